export type JournalRows = never;
