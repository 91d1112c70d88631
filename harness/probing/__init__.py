"""The planner: observations in, next action and its prediction out. Pure; it neither waits nor speaks to anything."""
