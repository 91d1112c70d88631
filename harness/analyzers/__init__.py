"""Pure folds from a recording (later also source trees) to findings and coverage."""
