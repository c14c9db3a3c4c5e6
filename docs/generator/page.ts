/** A file below `docs/reference/`. */
export interface Page {
  readonly path: string;
  readonly text: string;
}
