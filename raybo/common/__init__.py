"""The ground floor: errors, checked arguments, text in and out, files, threads, options."""
