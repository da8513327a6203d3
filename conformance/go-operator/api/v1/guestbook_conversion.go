package v1

// Hub marks this version as the one that the others are converted from and to; it is the stored one.
func (*Guestbook) Hub() {}
