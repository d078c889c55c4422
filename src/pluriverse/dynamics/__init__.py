"""The maths of the smooth step, in plain Python over numbers or traced scalars."""
