"""An optimizer step is taken here, and all the state that it changes is kept here."""
