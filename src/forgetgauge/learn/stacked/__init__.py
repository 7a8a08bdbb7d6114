"""Many models of one architecture trained and asked as one stack: by vmap, or traced and computed by kernels."""
