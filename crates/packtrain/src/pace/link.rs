//! The gap behind each frame of an interface (section 3 of the CPS paper): what `packtrain pace link` starts.
