"""Where in the generated code a failure is made: in which kernel, or where else if all kernels are right."""
