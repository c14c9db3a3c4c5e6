/** Text that is HTML already. Everything else that reaches a page is escaped on the way. */
export class Html {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

/** What a template takes: text, numbers, HTML, lists of them. */
export type Child = string | number | Html | readonly Child[];

/** A template whose values are escaped unless they are `Html`; attribute values need quotes. */
export function html(literals: TemplateStringsArray, ...children: readonly Child[]): Html {
  // The source's indentation would be a third of a page full of tables.
  const [first, ...rest] = literals.map((literal) => literal.replaceAll(/\n\s+/g, '\n'));
  return new Html(
    rest.reduce((before, literal, index) => before + render(children[index]!) + literal, first!),
  );
}

export const nothing = new Html('');

function render(child: Child): string {
  if (child instanceof Html) return child.source;
  if (typeof child === 'object') return child.map(render).join('');
  return String(child).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** JSON for a `<script type="application/json">`: no `<` can end the element or open a comment. */
export function embeddedJson(value: unknown): Html {
  return new Html(
    JSON.stringify(value).replace(
      /[<\u2028\u2029]/g,
      (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
    ),
  );
}
