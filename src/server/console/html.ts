import { html } from 'hono/html';

/** What `html` makes: markup in which everything was escaped that is not markup itself. */
export type Html = ReturnType<typeof html>;

/** What a template takes; nothing is shown of null, undefined and booleans. */
export type Child = Html | string | number | boolean | null | undefined | readonly Child[];
