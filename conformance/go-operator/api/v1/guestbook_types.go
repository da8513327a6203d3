package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GuestbookType is what a guestbook lists its guests by.
// +kubebuilder:validation:Enum=Phone;Address;Name
type GuestbookType string

const (
	// PhoneType lists by phone number.
	PhoneType GuestbookType = "Phone"
	// AddressType lists by address.
	AddressType GuestbookType = "Address"
	// NameType lists by name.
	NameType GuestbookType = "Name"
)

// GuestbookSpec defines the desired state of Guestbook.
// +kubebuilder:validation:XValidation:rule="self.type != 'Phone' || !has(self.size) || self.size <= 5",message="a phone book has at most 5 replicas"
type GuestbookSpec struct {
	// Size is the number of replicas of the frontend.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	// +optional
	Size *int32 `json:"size,omitempty"`

	// ConfigMapName is the name of the ConfigMap with the frontend's configuration. It cannot be changed.
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="configMapName is immutable"
	ConfigMapName string `json:"configMapName"`

	// Type is what the guestbook lists its guests by.
	// +kubebuilder:default=Name
	// +optional
	Type GuestbookType `json:"type,omitempty"`
}

// GuestbookStatus defines the observed state of Guestbook.
type GuestbookStatus struct {
	// Ready is the number of replicas that are ready.
	// +optional
	Ready int32 `json:"ready,omitempty"`

	// Conditions tell how the guestbook is.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Guestbook is the Schema for the guestbooks API.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.ready
// +kubebuilder:resource:shortName=gb
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.ready`
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
