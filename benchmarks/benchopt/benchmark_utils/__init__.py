"""What the objective and several solvers share; nothing here imports groupowl."""
