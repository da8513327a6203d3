package v2

import (
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/conversion"

	webappv1 "windlass.dev/conformance/go-operator/api/v1"
)

// RefusedAnnotation makes a Guestbook one that cannot be converted.
const RefusedAnnotation = "webapp.my.domain/refuse-conversion"

// ConvertTo converts this Guestbook (v2) to the Hub version (v1).
func (src *Guestbook) ConvertTo(dstRaw conversion.Hub) error {
	dst := dstRaw.(*webappv1.Guestbook)
	if why, refused := src.Annotations[RefusedAnnotation]; refused {
		return fmt.Errorf("refused: %s", why)
	}
	dst.ObjectMeta = src.ObjectMeta
	dst.Spec.Size = src.Spec.Frontend.Replicas
	dst.Spec.ConfigMapName = src.Spec.Frontend.ConfigMapName
	if by := src.Spec.ListBy; by != "" {
		dst.Spec.Type = webappv1.GuestbookType(strings.ToUpper(by[:1]) + by[1:])
	}
	dst.Status.Ready = src.Status.ReadyReplicas
	dst.Status.Conditions = src.Status.Conditions
	return nil
}

// ConvertFrom converts from the Hub version (v1) to this version.
func (dst *Guestbook) ConvertFrom(srcRaw conversion.Hub) error {
	src := srcRaw.(*webappv1.Guestbook)
	dst.ObjectMeta = src.ObjectMeta
	dst.Spec.Frontend.Replicas = src.Spec.Size
	dst.Spec.Frontend.ConfigMapName = src.Spec.ConfigMapName
	dst.Spec.ListBy = strings.ToLower(string(src.Spec.Type))
	dst.Status.ReadyReplicas = src.Status.Ready
	dst.Status.Conditions = src.Status.Conditions
	return nil
}
