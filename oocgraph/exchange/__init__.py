"""Frontier parts from one worker to another."""
