"""Jobs to try raybo with, which need nothing but what raybo itself needs."""
