package v2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Frontend is what shows a guestbook.
type Frontend struct {
	// Replicas is their number.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// ConfigMapName is the name of the ConfigMap with the frontend's configuration.
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:MinLength=1
	ConfigMapName string `json:"configMapName"`
}

// GuestbookSpec defines the desired state of Guestbook.
type GuestbookSpec struct {
	// Frontend is what shows the guestbook.
	Frontend Frontend `json:"frontend"`

	// ListBy is what the guestbook lists its guests by, in lower case.
	// +kubebuilder:validation:Enum=phone;address;name
	// +kubebuilder:default=name
	// +optional
	ListBy string `json:"listBy,omitempty"`
}

// GuestbookStatus defines the observed state of Guestbook.
type GuestbookStatus struct {
	// ReadyReplicas is the number of replicas that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// Conditions tell how the guestbook is.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Guestbook is the Schema for the guestbooks API.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.frontend.replicas,statuspath=.status.readyReplicas
// +kubebuilder:resource:shortName=gb
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.frontend.replicas`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
type Guestbook struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec GuestbookSpec `json:"spec"`
	// +optional
	Status GuestbookStatus `json:"status,omitempty"`
}

// GuestbookList contains a list of Guestbook.
// +kubebuilder:object:root=true
type GuestbookList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Guestbook `json:"items"`
}

func init() {
	SchemeBuilder.Register(&Guestbook{}, &GuestbookList{})
}
