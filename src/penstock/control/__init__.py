"""The actions on a running system: values with a dry run, and each that is carried out is written down."""
