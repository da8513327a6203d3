// The operator of Guestbooks.
package main

import (
	"flag"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	webappv1 "windlass.dev/conformance/go-operator/api/v1"
	webappv2 "windlass.dev/conformance/go-operator/api/v2"
	"windlass.dev/conformance/go-operator/internal/controller"
	webhookv1 "windlass.dev/conformance/go-operator/internal/webhook/v1"
)

func main() {
	var leaderElect bool
	flag.BoolVar(&leaderElect, "leader-elect", false, "Enable leader election for controller manager.")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	log := ctrl.Log.WithName("setup")
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(webappv1.AddToScheme(scheme))
	utilruntime.Must(webappv2.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme: scheme, LeaderElection: leaderElect, LeaderElectionID: "guestbook.my.domain",
	})
	exitOn(err, "unable to start manager")
	reconciler := &controller.GuestbookReconciler{
		Client: mgr.GetClient(), Scheme: mgr.GetScheme(), Recorder: mgr.GetEventRecorderFor("guestbook"),
	}
	exitOn(reconciler.SetupWithManager(mgr), "unable to create controller")
	exitOn(webhookv1.SetupGuestbookWebhookWithManager(mgr), "unable to create webhook")
	log.Info("starting manager")
	exitOn(mgr.Start(ctrl.SetupSignalHandler()), "problem running manager")
}

func exitOn(err error, what string) {
	if err != nil {
		ctrl.Log.WithName("setup").Error(err, what)
		os.Exit(1)
	}
}
