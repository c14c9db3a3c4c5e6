import { html } from 'hono/html';

/** Markup that the `html` template made; it escapes everything inserted that is not `Html`. */
export type Html = ReturnType<typeof html>;

/** A value in a template. `null`, `undefined` and booleans add nothing. */
export type Child = Html | string | number | boolean | null | undefined | readonly Child[];
