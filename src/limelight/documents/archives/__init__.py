"""Documents that are ZIP archives of XML files have their texts spliced member by member."""
