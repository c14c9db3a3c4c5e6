/** Mutants that no test catches, by name, and why they may stay. */
export const SURVIVORS: Readonly<Record<string, string>> = {};
