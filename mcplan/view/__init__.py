"""What a person looks at: meshcat replay, offline HTML, plots."""
