// Package controller holds the reconciler of Guestbooks.
package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	webappv1 "windlass.dev/conformance/go-operator/api/v1"
)

// Finalizer keeps a Guestbook until its farewell is written.
const Finalizer = "webapp.my.domain/farewell"

// GuestbookReconciler reconciles a Guestbook object.
type GuestbookReconciler struct {
	client.Client
	Scheme   *runtime.Scheme
	Recorder record.EventRecorder
}

// +kubebuilder:rbac:groups=webapp.my.domain,resources=guestbooks,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=webapp.my.domain,resources=guestbooks/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=webapp.my.domain,resources=guestbooks/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update

// Reconcile gives a Guestbook its Deployment, and a farewell when it goes.
func (r *GuestbookReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	log := log.FromContext(ctx)
	var book webappv1.Guestbook
	if err := r.Get(ctx, req.NamespacedName, &book); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !book.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.farewell(ctx, &book)
	}
	if controllerutil.AddFinalizer(&book, Finalizer) {
		if err := r.Update(ctx, &book); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: book.Name, Namespace: book.Namespace}}
	result, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		labels := map[string]string{"guestbook": book.Name}
		deployment.Spec.Replicas = book.Spec.Size
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		deployment.Spec.Template.Labels = labels
		deployment.Spec.Template.Spec.Containers = []corev1.Container{{
			Name:  "frontend",
			Image: "guestbook:" + string(book.Spec.Type),
			EnvFrom: []corev1.EnvFromSource{{
				ConfigMapRef: &corev1.ConfigMapEnvSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: book.Spec.ConfigMapName},
				},
			}},
		}}
		return controllerutil.SetControllerReference(&book, deployment, r.Scheme)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if result != controllerutil.OperationResultNone {
		log.Info("deployment", "result", result)
		r.Recorder.Eventf(&book, corev1.EventTypeNormal, "Deployed", "deployment %s", result)
	}
	before := book.DeepCopy()
	book.Status.Ready = deployment.Status.ReadyReplicas
	ready := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "Starting", ObservedGeneration: book.Generation,
	}
	if book.Spec.Size != nil && book.Status.Ready >= *book.Spec.Size {
		ready.Status, ready.Reason = metav1.ConditionTrue, "AllReady"
	}
	meta.SetStatusCondition(&book.Status.Conditions, ready)
	return ctrl.Result{}, r.Status().Patch(ctx, &book, client.MergeFrom(before))
}

// farewell writes a ConfigMap, and then lets the Guestbook go.
func (r *GuestbookReconciler) farewell(ctx context.Context, book *webappv1.Guestbook) error {
	if !controllerutil.ContainsFinalizer(book, Finalizer) {
		return nil
	}
	farewell := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: book.Name + "-farewell", Namespace: book.Namespace},
		Data:       map[string]string{"uid": string(book.UID)},
	}
	if err := r.Create(ctx, farewell); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	controllerutil.RemoveFinalizer(book, Finalizer)
	return client.IgnoreNotFound(r.Update(ctx, book))
}

// SetupWithManager sets up the controller with the Manager.
func (r *GuestbookReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&webappv1.Guestbook{}).
		Owns(&appsv1.Deployment{}).
		Named("guestbook").
		Complete(r)
}
