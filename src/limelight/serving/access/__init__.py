"""Keys, rates and quotas decide whose request is let in."""
