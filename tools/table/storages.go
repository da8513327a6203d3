package main

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	crdserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	crdregistry "k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serveroptions "k8s.io/apiserver/pkg/server/options"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	apiservicerest "k8s.io/kube-aggregator/pkg/registry/apiservice/rest"
	"k8s.io/kubernetes/pkg/controlplane"
	"k8s.io/kubernetes/pkg/kubeapiserver"
	admissionregistrationrest "k8s.io/kubernetes/pkg/registry/admissionregistration/rest"
	appsrest "k8s.io/kubernetes/pkg/registry/apps/rest"
	authenticationrest "k8s.io/kubernetes/pkg/registry/authentication/rest"
	authorizationrest "k8s.io/kubernetes/pkg/registry/authorization/rest"
	autoscalingrest "k8s.io/kubernetes/pkg/registry/autoscaling/rest"
	batchrest "k8s.io/kubernetes/pkg/registry/batch/rest"
	certificatesrest "k8s.io/kubernetes/pkg/registry/certificates/rest"
	coordinationrest "k8s.io/kubernetes/pkg/registry/coordination/rest"
	discoveryrest "k8s.io/kubernetes/pkg/registry/discovery/rest"
	eventsrest "k8s.io/kubernetes/pkg/registry/events/rest"
	flowcontrolrest "k8s.io/kubernetes/pkg/registry/flowcontrol/rest"
	networkingrest "k8s.io/kubernetes/pkg/registry/networking/rest"
	noderest "k8s.io/kubernetes/pkg/registry/node/rest"
	policyrest "k8s.io/kubernetes/pkg/registry/policy/rest"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	resourcerest "k8s.io/kubernetes/pkg/registry/resource/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
	storagerest "k8s.io/kubernetes/pkg/registry/storage/rest"
)

// storages maps "group/version" and "resource[/subresource]" to the storage that kube-apiserver installs there.
type storages map[string]map[string]rest.Storage

// storageless gives the registries everything but a place to keep objects: nothing here ever reads or writes one.
type storageless struct {
	factory *serverstorage.DefaultStorageFactory
}

func (s storageless) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	config, err := s.factory.NewConfig(resource, example)
	if err != nil {
		return generic.RESTOptions{}, err
	}
	return generic.RESTOptions{
		StorageConfig:  config,
		ResourcePrefix: s.factory.ResourcePrefix(resource),
		Decorator: func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object, func() runtime.Object,
			storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
			return nil, func() {}, nil
		},
	}, nil
}

// newStorages builds the same registries as a kube-apiserver with default flags.
func newStorages() (storages, error) {
	enabled := controlplane.DefaultAPIResourceConfigSource()
	config := kubeapiserver.NewStorageFactoryConfig()
	config.APIResourceConfig = enabled
	etcd := serveroptions.NewEtcdOptions(&storagebackend.Config{Prefix: "/registry"})
	storageFactory, err := config.Complete(etcd).New()
	if err != nil {
		return nil, err
	}
	// Some registries keep a client; none of them uses it here.
	client, err := kubernetes.NewForConfig(&restclient.Config{})
	if err != nil {
		return nil, err
	}
	informers := informers.NewSharedInformerFactory(client, 0)
	allow := authorizerfactory.NewAlwaysAllowAuthorizer()
	providers := []interface {
		NewRESTStorage(serverstorage.APIResourceConfigSource, generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error)
	}{
		coreProvider{allow},
		authenticationrest.RESTStorageProvider{},
		authorizationrest.RESTStorageProvider{Authorizer: allow},
		autoscalingrest.RESTStorageProvider{},
		batchrest.RESTStorageProvider{},
		certificatesrest.RESTStorageProvider{Authorizer: allow},
		coordinationrest.RESTStorageProvider{},
		discoveryrest.StorageProvider{},
		networkingrest.RESTStorageProvider{},
		noderest.RESTStorageProvider{},
		policyrest.RESTStorageProvider{},
		rbacrest.RESTStorageProvider{Authorizer: allow},
		schedulingrest.RESTStorageProvider{},
		storagerest.RESTStorageProvider{},
		flowcontrolrest.RESTStorageProvider{InformerFactory: informers},
		appsrest.StorageProvider{},
		admissionregistrationrest.RESTStorageProvider{Authorizer: allow, DiscoveryClient: client.Discovery()},
		eventsrest.RESTStorageProvider{TTL: time.Hour},
		resourcerest.RESTStorageProvider{NamespaceClient: client.CoreV1().Namespaces(), Authorizer: allow},
	}
	all := storages{}
	getter := storageless{storageFactory}
	for _, provider := range providers {
		info, err := provider.NewRESTStorage(enabled, getter)
		if err != nil {
			return nil, err
		}
		all.add(info.PrioritizedVersions[0].Group, info)
	}
	return all, all.addServersBehind(enabled, etcd.StorageConfig)
}

func (s storages) add(group string, info genericapiserver.APIGroupInfo) {
	for version, byResource := range info.VersionedResourcesStorageMap {
		s[schema.GroupVersion{Group: group, Version: version}.String()] = byResource
	}
}

// addServersBehind adds what kube-apiserver delegates to: the API extensions server and the aggregator.
func (s storages) addServersBehind(enabled *serverstorage.ResourceConfig, backend storagebackend.Config) error {
	getterFor := func(scheme *runtime.Scheme, codecs runtime.StorageSerializer) storageless {
		return storageless{serverstorage.NewDefaultStorageFactory(backend, runtime.ContentTypeJSON, codecs,
			serverstorage.NewDefaultResourceEncodingConfig(scheme), enabled, nil)}
	}
	crds, err := crdregistry.NewREST(crdserver.Scheme, getterFor(crdserver.Scheme, crdserver.Codecs))
	if err != nil {
		return err
	}
	// kube-apiserver pins the storage version of CustomResourceDefinitions to the one before last.
	crds.StorageVersioner = runtime.NewMultiGroupVersioner(apiextensionsv1beta1.SchemeGroupVersion, schema.GroupKind{Group: apiextensions.GroupName})
	s[apiextensions.GroupName+"/v1"] = map[string]rest.Storage{
		"customresourcedefinitions":        crds,
		"customresourcedefinitions/status": crdregistry.NewStatusREST(crdserver.Scheme, crds),
	}
	enabled.EnableVersions(apiregistrationv1.SchemeGroupVersion)
	s.add(apiregistrationv1.GroupName, apiservicerest.NewRESTStorage(enabled, getterFor(aggregatorscheme.Scheme, aggregatorscheme.Codecs), false))
	return nil
}

// storeOf digs the generic store out of a storage: most embed it, some hide it in a private field or behind a wrapper (RBAC).
func storeOf(s rest.Storage) (*genericregistry.Store, error) {
	want := reflect.TypeFor[*genericregistry.Store]()
	for v := reflect.ValueOf(s); ; {
		for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer && v.Type() != want {
			v = v.Elem()
		}
		if v.Type() == want {
			// Interface would refuse a value that came out of a private field.
			return (*genericregistry.Store)(v.UnsafePointer()), nil
		}
		next := slices.IndexFunc(reflect.VisibleFields(v.Type()), func(f reflect.StructField) bool {
			return len(f.Index) == 1 && (f.Type == want || f.Anonymous)
		})
		if next < 0 {
			return nil, fmt.Errorf("%T: no generic store inside", s)
		}
		v = v.FieldByIndex(reflect.VisibleFields(v.Type())[next].Index)
	}
}
