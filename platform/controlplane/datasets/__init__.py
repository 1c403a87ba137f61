"""Datasets: files of rows that a team uploads and its runs learn from."""
