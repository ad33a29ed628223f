"""Pure decisions: numbers in, a choice and its reason out."""
