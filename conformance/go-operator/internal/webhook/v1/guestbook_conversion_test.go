package v1

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webappv1 "windlass.dev/conformance/go-operator/api/v1"
	webappv2 "windlass.dev/conformance/go-operator/api/v2"
)

var _ = Describe("Guestbook Conversion", func() {
	old := func(name string) *webappv1.Guestbook {
		return &webappv1.Guestbook{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"test": name}},
			Spec:       webappv1.GuestbookSpec{ConfigMapName: "config", Size: ptr.To[int32](2), Type: webappv1.AddressType},
		}
	}
	current := func(name string) *webappv2.Guestbook {
		return &webappv2.Guestbook{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"test": name}},
			Spec:       webappv2.GuestbookSpec{Frontend: webappv2.Frontend{ConfigMapName: "config"}, ListBy: "phone"},
		}
	}

	It("shows as v2 what was written as v1", func() {
		written := old("written-as-v1")
		Expect(k8sClient.Create(ctx, written)).To(Succeed())
		read := &webappv2.Guestbook{}
		Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(written), read)).To(Succeed())
		Expect(read.Spec.Frontend.Replicas).To(HaveValue(BeEquivalentTo(2)))
		Expect(read.Spec.Frontend.ConfigMapName).To(Equal("config"))
		Expect(read.Spec.ListBy).To(Equal("address"))
		Expect(read.UID).To(Equal(written.UID))
		Expect(read.ResourceVersion).To(Equal(written.ResourceVersion))
	})

	It("asks the webhooks of v1 about what is written as v2", func() {
		written := current("written-as-v2")
		Expect(k8sClient.Create(ctx, written)).To(Succeed())
		Expect(written.Spec.Frontend.Replicas).To(HaveValue(BeEquivalentTo(3)))
		read := &webappv1.Guestbook{}
		Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(written), read)).To(Succeed())
		Expect(read.Spec.Size).To(HaveValue(BeEquivalentTo(3)))
		Expect(read.Spec.Type).To(Equal(webappv1.PhoneType))

		reserved := current("reserved-as-v2")
		reserved.Spec.Frontend.ConfigMapName = "forbidden"
		err := k8sClient.Create(ctx, reserved)
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("is reserved")))
	})

	It("updates and patches in either version", func() {
		book := old("changed")
		Expect(k8sClient.Create(ctx, book)).To(Succeed())
		as2 := &webappv2.Guestbook{}
		Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(book), as2)).To(Succeed())
		as2.Spec.Frontend.Replicas = ptr.To[int32](4)
		Expect(k8sClient.Update(ctx, as2)).To(Succeed())
		Expect(as2.Generation).To(BeEquivalentTo(2))

		patch := client.MergeFrom(as2.DeepCopy())
		as2.Spec.ListBy = "name"
		Expect(k8sClient.Patch(ctx, as2, patch)).To(Succeed())
		Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(book), book)).To(Succeed())
		Expect(book.Spec.Size).To(HaveValue(BeEquivalentTo(4)))
		Expect(book.Spec.Type).To(Equal(webappv1.NameType))

		book.Status.Ready = 1
		Expect(k8sClient.Status().Update(ctx, book)).To(Succeed())
		Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(book), as2)).To(Succeed())
		Expect(as2.Status.ReadyReplicas).To(BeEquivalentTo(1))
		as2.Status.ReadyReplicas = 2
		Expect(k8sClient.Status().Update(ctx, as2)).To(Succeed())
		Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(book), book)).To(Succeed())
		Expect(book.Status.Ready).To(BeEquivalentTo(2))
	})

	It("applies as v2", func() {
		book := current("applied-as-v2")
		book.SetGroupVersionKind(webappv2.GroupVersion.WithKind("Guestbook"))
		Expect(k8sClient.Patch(ctx, book, client.Apply, client.FieldOwner("suite"))).To(Succeed())
		Expect(book.Spec.Frontend.Replicas).To(HaveValue(BeEquivalentTo(3)))
		Expect(book.ManagedFields).To(ContainElement(HaveField("APIVersion", "webapp.my.domain/v2")))
	})

	It("holds the rules of both versions", func() {
		book := old("ruled")
		Expect(k8sClient.Create(ctx, book)).To(Succeed())
		as2 := &webappv2.Guestbook{}
		Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(book), as2)).To(Succeed())
		as2.Spec.Frontend.Replicas = ptr.To[int32](11)
		err := k8sClient.Update(ctx, as2)
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("spec.frontend.replicas")))
	})

	It("lists and watches as v2", func() {
		labels := client.MatchingLabels{"test": "watched"}
		watch, err := k8sClient.Watch(ctx, &webappv2.GuestbookList{}, client.InNamespace("default"), labels)
		Expect(err).NotTo(HaveOccurred())
		defer watch.Stop()
		book := old("watched")
		Expect(k8sClient.Create(ctx, book)).To(Succeed())
		Eventually(watch.ResultChan()).Should(Receive(HaveField("Object.Spec.ListBy", "address")))
		book.Spec.Type = webappv1.NameType
		Expect(k8sClient.Update(ctx, book)).To(Succeed())
		Eventually(watch.ResultChan()).Should(Receive(HaveField("Object.Spec.ListBy", "name")))

		list := &webappv2.GuestbookList{}
		Expect(k8sClient.List(ctx, list, client.InNamespace("default"), labels)).To(Succeed())
		Expect(list.Items).To(HaveLen(1))
		Expect(list.Items[0].Spec.Frontend.Replicas).To(HaveValue(BeEquivalentTo(2)))
	})

	It("tells why a conversion was refused", func() {
		book := current("refused")
		book.Annotations = map[string]string{webappv2.RefusedAnnotation: "by the suite"}
		err := k8sClient.Create(ctx, book)
		Expect(err).To(MatchError(ContainSubstring("conversion webhook for webapp.my.domain/v2, Kind=Guestbook failed")))
		Expect(err).To(MatchError(ContainSubstring("by the suite")))
		Expect(apierrors.IsNotFound(k8sClient.Get(ctx, client.ObjectKeyFromObject(book), &webappv1.Guestbook{}))).To(BeTrue())
	})
})
