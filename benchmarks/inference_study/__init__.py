"""Which procedures keep their promises about false discoveries, and at which power: a simulation study."""
