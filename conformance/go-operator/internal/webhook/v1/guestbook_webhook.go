// Package v1 holds the admission webhooks of Guestbooks.
package v1

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	webappv1 "windlass.dev/conformance/go-operator/api/v1"
)

// KeepAnnotation forbids to delete a Guestbook.
const KeepAnnotation = "webapp.my.domain/keep"

// SetupGuestbookWebhookWithManager registers the webhook for Guestbook in the manager.
func SetupGuestbookWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &webappv1.Guestbook{}).
		WithValidator(&GuestbookCustomValidator{}).
		WithDefaulter(&GuestbookCustomDefaulter{DefaultSize: 3}).
		Complete()
}

// +kubebuilder:webhook:path=/mutate-webapp-my-domain-v1-guestbook,mutating=true,failurePolicy=fail,sideEffects=None,groups=webapp.my.domain,resources=guestbooks,verbs=create;update,versions=v1,name=mguestbook-v1.kb.io,admissionReviewVersions=v1

// GuestbookCustomDefaulter gives Guestbooks a size.
type GuestbookCustomDefaulter struct {
	DefaultSize int32
}

// Default implements the defaulting webhook.
func (d *GuestbookCustomDefaulter) Default(_ context.Context, book *webappv1.Guestbook) error {
	if book.Spec.Size == nil {
		book.Spec.Size = &d.DefaultSize
	}
	return nil
}

// +kubebuilder:webhook:path=/validate-webapp-my-domain-v1-guestbook,mutating=false,failurePolicy=fail,sideEffects=None,groups=webapp.my.domain,resources=guestbooks,verbs=create;update;delete,versions=v1,name=vguestbook-v1.kb.io,admissionReviewVersions=v1

// GuestbookCustomValidator refuses Guestbooks that make no sense.
type GuestbookCustomValidator struct{}

// ValidateCreate implements the validating webhook.
func (v *GuestbookCustomValidator) ValidateCreate(_ context.Context, book *webappv1.Guestbook) (admission.Warnings, error) {
	return warnings(book), validate(book)
}

// ValidateUpdate implements the validating webhook.
func (v *GuestbookCustomValidator) ValidateUpdate(_ context.Context, _, book *webappv1.Guestbook) (admission.Warnings, error) {
	return warnings(book), validate(book)
}

// ValidateDelete implements the validating webhook.
func (v *GuestbookCustomValidator) ValidateDelete(_ context.Context, book *webappv1.Guestbook) (admission.Warnings, error) {
	if book.Annotations[KeepAnnotation] == "true" {
		return nil, fmt.Errorf("%s is to be kept: remove the annotation %s first", book.Name, KeepAnnotation)
	}
	return nil, nil
}

func warnings(book *webappv1.Guestbook) admission.Warnings {
	if book.Spec.Size != nil && *book.Spec.Size == 0 {
		return admission.Warnings{"spec.size is 0: nobody can sign"}
	}
	return nil
}

func validate(book *webappv1.Guestbook) error {
	if book.Spec.ConfigMapName != "forbidden" {
		return nil
	}
	kind := webappv1.GroupVersion.WithKind("Guestbook").GroupKind()
	path := field.NewPath("spec").Child("configMapName")
	return apierrors.NewInvalid(kind, book.Name, field.ErrorList{
		field.Invalid(path, book.Spec.ConfigMapName, "is reserved"),
	})
}
