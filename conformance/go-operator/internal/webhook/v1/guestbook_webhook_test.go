package v1

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webappv1 "windlass.dev/conformance/go-operator/api/v1"
)

var _ = Describe("Guestbook Webhook", func() {
	guestbook := func(name string) *webappv1.Guestbook {
		return &webappv1.Guestbook{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
			Spec:       webappv1.GuestbookSpec{ConfigMapName: "config"},
		}
	}

	It("gives a size", func() {
		book := guestbook("sized")
		Expect(k8sClient.Create(ctx, book)).To(Succeed())
		Expect(book.Spec.Size).To(HaveValue(BeEquivalentTo(3)))
	})

	It("leaves a size alone", func() {
		book := guestbook("small")
		book.Spec.Size = ptr.To[int32](1)
		Expect(k8sClient.Create(ctx, book)).To(Succeed())
		Expect(book.Spec.Size).To(HaveValue(BeEquivalentTo(1)))
	})

	It("refuses a reserved name", func() {
		book := guestbook("reserved")
		book.Spec.ConfigMapName = "forbidden"
		err := k8sClient.Create(ctx, book)
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring(`admission webhook "vguestbook-v1.kb.io" denied the request`)))
		Expect(err).To(MatchError(ContainSubstring(`spec.configMapName: Invalid value: "forbidden": is reserved`)))
		Expect(apierrors.IsNotFound(k8sClient.Get(ctx, client.ObjectKeyFromObject(book), book))).To(BeTrue())
	})

	It("keeps what is to be kept", func() {
		book := guestbook("kept")
		book.Annotations = map[string]string{KeepAnnotation: "true"}
		Expect(k8sClient.Create(ctx, book)).To(Succeed())
		err := k8sClient.Delete(ctx, book)
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)

		book.Annotations = nil
		Expect(k8sClient.Update(ctx, book)).To(Succeed())
		Expect(k8sClient.Delete(ctx, book)).To(Succeed())
	})

	It("is asked about a dry run, which leaves nothing", func() {
		book := guestbook("dry")
		Expect(k8sClient.Create(ctx, book, client.DryRunAll)).To(Succeed())
		Expect(book.Spec.Size).To(HaveValue(BeEquivalentTo(3)))
		Expect(apierrors.IsNotFound(k8sClient.Get(ctx, client.ObjectKeyFromObject(book), book))).To(BeTrue())
	})

	It("runs on server-side apply", func() {
		book := guestbook("applied")
		book.SetGroupVersionKind(webappv1.GroupVersion.WithKind("Guestbook"))
		Expect(k8sClient.Patch(ctx, book, client.Apply, client.FieldOwner("suite"))).To(Succeed())
		Expect(book.Spec.Size).To(HaveValue(BeEquivalentTo(3)))
	})
})
