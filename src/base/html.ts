/** HTML source. Templates escape all other text. */
export class Html {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

export type Child = string | number | Html | readonly Child[];

/** Template tag that escapes its values unless they are `Html`. Attribute values must be quoted. */
export function html(literals: TemplateStringsArray, ...children: readonly Child[]): Html {
  const parts = withoutIndentation(literals);
  let source = parts[0]!;
  for (let index = 0; index < children.length; index += 1) {
    source += render(children[index]!) + parts[index + 1]!;
  }
  return new Html(source);
}

/** Parts of each template in the code, which a large table renders thousands of times. */
const templates = new WeakMap<TemplateStringsArray, readonly string[]>();

/** Removes the indentation of a template, which would take a third of a page with large tables. */
function withoutIndentation(literals: TemplateStringsArray): readonly string[] {
  let parts = templates.get(literals);
  if (parts === undefined) {
    parts = literals.map((literal) => literal.replaceAll(/\n\s+/g, '\n'));
    templates.set(literals, parts);
  }
  return parts;
}

export const nothing = new Html('');

function render(child: Child): string {
  if (child instanceof Html) return child.source;
  if (typeof child === 'number') return String(child);
  if (typeof child === 'object') return child.map(render).join('');
  return child.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** JSON for a `<script type="application/json">`, without a `<` that could end it or begin a comment. */
export function embeddedJson(value: unknown): Html {
  return new Html(
    JSON.stringify(value).replace(
      /[<\u2028\u2029]/g,
      (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
    ),
  );
}
