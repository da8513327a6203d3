package controller

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	authnv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	webappv1 "windlass.dev/conformance/go-operator/api/v1"
)

const (
	timeout  = 10 * time.Second
	interval = 50 * time.Millisecond
)

var _ = Describe("Guestbook Controller", func() {
	var namespace string

	BeforeEach(func() {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "guestbook-"}}
		Expect(k8sClient.Create(ctx, ns)).To(Succeed())
		namespace = ns.Name
	})

	guestbook := func(name string) *webappv1.Guestbook {
		return &webappv1.Guestbook{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
			Spec:       webappv1.GuestbookSpec{Size: ptr.To[int32](2), ConfigMapName: "config"},
		}
	}
	key := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}

	It("makes a Deployment and follows its status", func() {
		book := guestbook("front")
		Expect(k8sClient.Create(ctx, book)).To(Succeed())
		Expect(book.Spec.Type).To(Equal(webappv1.NameType), "the default of the schema")

		deployment := &appsv1.Deployment{}
		Eventually(func() error { return k8sClient.Get(ctx, key("front"), deployment) }, timeout, interval).Should(Succeed())
		Expect(*deployment.Spec.Replicas).To(BeEquivalentTo(2))
		Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(Equal("guestbook:Name"))
		Expect(metav1.IsControlledBy(deployment, book)).To(BeTrue())

		By("being the Deployment's controller, which nobody else is here")
		deployment.Status = appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2}
		Expect(k8sClient.Status().Update(ctx, deployment)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(k8sClient.Get(ctx, key("front"), book)).To(Succeed())
			g.Expect(book.Status.Ready).To(BeEquivalentTo(2))
			g.Expect(meta.IsStatusConditionTrue(book.Status.Conditions, "Ready")).To(BeTrue())
		}, timeout, interval).Should(Succeed())

		By("scaling")
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 4}}
		Expect(k8sClient.SubResource("scale").Update(ctx, book, client.WithSubResourceBody(scale))).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(k8sClient.Get(ctx, key("front"), deployment)).To(Succeed())
			g.Expect(*deployment.Spec.Replicas).To(BeEquivalentTo(4))
		}, timeout, interval).Should(Succeed())

		By("telling")
		Eventually(func(g Gomega) {
			events := &corev1.EventList{}
			g.Expect(k8sClient.List(ctx, events, client.InNamespace(namespace),
				client.MatchingFields{"involvedObject.uid": string(book.UID)})).To(Succeed())
			g.Expect(events.Items).NotTo(BeEmpty())
			g.Expect(events.Items[0].Reason).To(Equal("Deployed"))
		}, timeout, interval).Should(Succeed())
	})

	It("makes the Deployment again when somebody deletes it", func() {
		Expect(k8sClient.Create(ctx, guestbook("again"))).To(Succeed())
		first := &appsv1.Deployment{}
		Eventually(func() error { return k8sClient.Get(ctx, key("again"), first) }, timeout, interval).Should(Succeed())
		Expect(k8sClient.Delete(ctx, first)).To(Succeed())
		Eventually(func(g Gomega) {
			second := &appsv1.Deployment{}
			g.Expect(k8sClient.Get(ctx, key("again"), second)).To(Succeed())
			g.Expect(second.UID).NotTo(Equal(first.UID))
		}, timeout, interval).Should(Succeed())
	})

	It("says farewell, and leaves what nobody collects", func() {
		book := guestbook("leaving")
		Expect(k8sClient.Create(ctx, book)).To(Succeed())
		Eventually(func() error {
			return k8sClient.Get(ctx, key("leaving"), &appsv1.Deployment{})
		}, timeout, interval).Should(Succeed())
		Expect(k8sClient.Delete(ctx, book)).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(k8sClient.Get(ctx, key("leaving"), &webappv1.Guestbook{}))
		}, timeout, interval).Should(BeTrue())
		farewell := &corev1.ConfigMap{}
		Expect(k8sClient.Get(ctx, key("leaving-farewell"), farewell)).To(Succeed())
		Expect(farewell.Data).To(HaveKeyWithValue("uid", string(book.UID)))
		Consistently(func() error {
			return k8sClient.Get(ctx, key("leaving"), &appsv1.Deployment{})
		}, "500ms", interval).Should(Succeed(), "envtest has no garbage collector")
	})

	It("is held to its schema", func() {
		book := guestbook("wrong")
		book.Spec.Type = "Smell"
		err := k8sClient.Create(ctx, book)
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err.Error()).To(ContainSubstring(`spec.type: Unsupported value: "Smell"`))

		book = guestbook("phones")
		book.Spec.Type, book.Spec.Size = webappv1.PhoneType, ptr.To[int32](6)
		Expect(k8sClient.Create(ctx, book)).To(MatchError(ContainSubstring("a phone book has at most 5 replicas")))

		book = guestbook("fixed")
		Expect(k8sClient.Create(ctx, book)).To(Succeed())
		Expect(retryOnConflict(func() error {
			if err := k8sClient.Get(ctx, key("fixed"), book); err != nil {
				return err
			}
			book.Spec.ConfigMapName = "other"
			return k8sClient.Update(ctx, book)
		})).To(MatchError(ContainSubstring("configMapName is immutable")))
	})

	It("refuses a write to an old version", func() {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "config", Namespace: namespace}}
		Expect(k8sClient.Create(ctx, object)).To(Succeed())
		stale := object.DeepCopy()
		object.Data = map[string]string{"a": "1"}
		Expect(k8sClient.Update(ctx, object)).To(Succeed())
		stale.Data = map[string]string{"a": "2"}
		Expect(apierrors.IsConflict(k8sClient.Update(ctx, stale))).To(BeTrue())
	})

	It("asks who may", func() {
		reader, err := testEnv.AddUser(envtest.User{Name: "reader", Groups: []string{"readers"}}, nil)
		Expect(err).NotTo(HaveOccurred())
		as, err := client.New(reader.Config(), client.Options{Scheme: k8sClient.Scheme(), Mapper: k8sClient.RESTMapper()})
		Expect(err).NotTo(HaveOccurred())
		books := &webappv1.GuestbookList{}
		err = as.List(ctx, books, client.InNamespace(namespace))
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		Expect(err.Error()).To(ContainSubstring(`User "reader" cannot list resource "guestbooks" in API group "webapp.my.domain"`))

		role := &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Name: "read", Namespace: namespace},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{webappv1.GroupVersion.Group}, Resources: []string{"guestbooks"}, Verbs: []string{"list"},
			}},
		}
		Expect(k8sClient.Create(ctx, role)).To(Succeed())
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "read", Namespace: namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "read"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "readers"}},
		}
		Expect(k8sClient.Create(ctx, binding)).To(Succeed())
		Eventually(func() error { return as.List(ctx, books, client.InNamespace(namespace)) }, timeout, interval).Should(Succeed())
		Expect(apierrors.IsForbidden(as.Create(ctx, guestbook("no")))).To(BeTrue())
	})

	It("gives a service account its token", func() {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot", Namespace: namespace}}
		Expect(k8sClient.Create(ctx, account)).To(Succeed())
		request := &authnv1.TokenRequest{}
		Expect(k8sClient.SubResource("token").Create(ctx, account, request)).To(Succeed())

		robot := rest.AnonymousClientConfig(cfg)
		robot.BearerToken = request.Status.Token
		clients, err := kubernetes.NewForConfig(robot)
		Expect(err).NotTo(HaveOccurred())
		review, err := clients.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authnv1.SelfSubjectReview{}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(review.Status.UserInfo.Username).To(Equal("system:serviceaccount:" + namespace + ":robot"))
		Expect(review.Status.UserInfo.Groups).To(ContainElement("system:serviceaccounts:" + namespace))
	})
})

// retryOnConflict tries again while somebody else, the controller, is writing.
func retryOnConflict(try func() error) error {
	for {
		if err := try(); !apierrors.IsConflict(err) {
			return err
		}
	}
}
