"""The narrow phase: contacts between two geoms, in plain Python over numbers or traced scalars."""
