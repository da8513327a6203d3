package main

import (
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	api "k8s.io/kubernetes/pkg/apis/core"
	kubeletclient "k8s.io/kubernetes/pkg/kubelet/client"
	"k8s.io/kubernetes/pkg/registry/core/componentstatus"
	endpointsstore "k8s.io/kubernetes/pkg/registry/core/endpoint/storage"
	limitrangestore "k8s.io/kubernetes/pkg/registry/core/limitrange/storage"
	nodestore "k8s.io/kubernetes/pkg/registry/core/node/storage"
	pvstore "k8s.io/kubernetes/pkg/registry/core/persistentvolume/storage"
	pvcstore "k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim/storage"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	podtemplatestore "k8s.io/kubernetes/pkg/registry/core/podtemplate/storage"
	controllerstore "k8s.io/kubernetes/pkg/registry/core/replicationcontroller/storage"
	corerest "k8s.io/kubernetes/pkg/registry/core/rest"
	servicestore "k8s.io/kubernetes/pkg/registry/core/service/storage"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// coreProvider installs the core group. The provider of kube-apiserver itself cannot be used: its port allocator wants a live etcd.
type coreProvider struct{ authorizer authorizer.Authorizer }

func (p coreProvider) NewRESTStorage(enabled serverstorage.APIResourceConfigSource, getter generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error) {
	var issuer struct{ serviceaccount.TokenGenerator }
	config := corerest.GenericConfig{EventTTL: time.Hour, ServiceAccountIssuer: issuer}
	info, err := config.NewRESTStorage(enabled, getter)
	if err != nil {
		return info, err
	}
	podTemplates, err1 := podtemplatestore.NewREST(getter)
	limitRanges, err2 := limitrangestore.NewREST(getter)
	volumes, volumeStatus, err3 := pvstore.NewREST(getter)
	claims, claimStatus, err4 := pvcstore.NewREST(getter)
	endpoints, err5 := endpointsstore.NewREST(getter)
	controllers, err6 := controllerstore.NewStorage(getter)
	nodes, err7 := nodestore.NewStorage(getter, kubeletclient.KubeletClientConfig{}, nil)
	if err := firstError(err1, err2, err3, err4, err5, err6, err7); err != nil {
		return info, err
	}
	pods, err := podstore.NewStorage(getter, nodes.KubeletConnectionInfo, nil, nil, p.authorizer)
	if err != nil {
		return info, err
	}
	services, serviceStatus, serviceProxy, err := servicestore.NewREST(getter, api.IPv4Protocol, nil, nil, endpoints, pods.Pod, nil)
	if err != nil {
		return info, err
	}
	for resource, storage := range map[string]rest.Storage{
		"bindings":                      pods.LegacyBinding,
		"componentstatuses":             componentstatus.NewStorage(nil),
		"endpoints":                     endpoints,
		"limitranges":                   limitRanges,
		"nodes":                         nodes.Node,
		"nodes/proxy":                   nodes.Proxy,
		"nodes/status":                  nodes.Status,
		"persistentvolumeclaims":        claims,
		"persistentvolumeclaims/status": claimStatus,
		"persistentvolumes":             volumes,
		"persistentvolumes/status":      volumeStatus,
		"pods":                          pods.Pod,
		"pods/attach":                   pods.Attach,
		"pods/binding":                  pods.Binding,
		"pods/ephemeralcontainers":      pods.EphemeralContainers,
		"pods/eviction":                 pods.Eviction,
		"pods/exec":                     pods.Exec,
		"pods/log":                      pods.Log,
		"pods/portforward":              pods.PortForward,
		"pods/proxy":                    pods.Proxy,
		"pods/resize":                   pods.Resize,
		"pods/status":                   pods.Status,
		"podtemplates":                  podTemplates,
		"replicationcontrollers":        controllers.Controller,
		"replicationcontrollers/scale":  controllers.Scale,
		"replicationcontrollers/status": controllers.Status,
		"services":                      services,
		"services/proxy":                serviceProxy,
		"services/status":               serviceStatus,
	} {
		info.VersionedResourcesStorageMap["v1"][resource] = storage
	}
	return info, nil
}
