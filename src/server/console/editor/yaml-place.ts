/** A position in a YAML text that may be incomplete. */
export interface Place {
  /** Keys from the root to the map, list or value; `[]` for an item of a list. */
  readonly path: readonly string[];
  /** Whether the position follows the last key of `path`; otherwise another key may start there. */
  readonly isValue: boolean;
  /** Whether the position is inside `{…}` or `[…]`. */
  readonly isFlow: boolean;
  /** Column at which a key in this place starts, from 0. */
  readonly indent: number;
}

export const ITEM = '[]';

export function placeAt(text: string, offset: number): Place {
  const scan = new Scan();
  scan.read(text.slice(0, offset));
  return scan.place();
}

/** Scalars by the path to them, joined with `/`. Keys with another value have an empty text. */
export function scalarsIn(text: string): ReadonlyMap<string, string> {
  const scan = new Scan();
  scan.read(text);
  return scan.scalars;
}

const LINE = /^( *)((?:-(?: +|$))*)(.*)$/;
const KEY = /^("[^"]*"|'[^']*'|[^\s:#{}[\],&*!|>'"%@`-][^:#{}[\],]*?)\s*:(?:\s+(.*))?$/;

/** Reads lines one after another, and knows which maps and lists are open. */
class Scan {
  readonly scalars = new Map<string, string>();
  /** Open entries in block style. */
  #blocks: { readonly indent: number; readonly name: string }[] = [];
  /** Open `{` and `[`, with the key whose value is open. */
  readonly #flows: { readonly isMap: boolean; key: string | undefined }[] = [];
  #word = '';
  #indent = 0;
  #isValue = false;

  read(text: string): void {
    for (const line of text.split('\n')) {
      if (this.#flows.length > 0) this.#readFlow(line);
      else this.#readBlock(line);
    }
  }

  place(): Place {
    const flow = this.#flows.at(-1);
    const inFlow = flow !== undefined;
    const path = inFlow || this.#isValue ? this.#path() : this.#parentPath();
    const isValue = inFlow ? flow.key !== undefined || !flow.isMap : this.#isValue;
    return { path, isValue, isFlow: inFlow, indent: this.#indent };
  }

  #path(): string[] {
    const inFlow = this.#flows.map(({ isMap, key }) => (isMap ? key : ITEM));
    const names = [...this.#blocks.map(({ name }) => name), ...inFlow];
    return names.filter((name) => name !== undefined);
  }

  #parentPath(): string[] {
    return this.#blocks.filter(({ indent }) => indent < this.#indent).map(({ name }) => name);
  }

  #readBlock(line: string): void {
    const [, spaces, dashes, rest] = LINE.exec(line) as unknown as [string, string, string, string];
    this.#isValue = false;
    this.#indent = spaces.length + dashes.length;
    if (dashes === '' && (rest === '' || rest.startsWith('#'))) return;
    this.#close(spaces.length, dashes !== '');
    for (let indent = spaces.length; indent < this.#indent; indent += 1) {
      if (line[indent] === '-') this.#blocks.push({ indent, name: ITEM });
    }
    const [, key, value = ''] = KEY.exec(rest) ?? [];
    if (key === undefined) return;
    this.#blocks.push({ indent: this.#indent, name: unquoted(key) });
    this.#isValue = true;
    this.scalars.set(this.#path().join('/'), '');
    if (/^[{[]/.test(value)) this.#readFlow(value);
    else this.#keep(value.replace(/(^|\s)#.*$/, ''));
  }

  /** Closes entries that a line with this indentation ends. A list may start below its key. */
  #close(indent: number, isItem: boolean): void {
    this.#blocks = this.#blocks.filter(
      (open) => open.indent < indent || (isItem && open.indent === indent && open.name !== ITEM),
    );
  }

  #readFlow(text: string): void {
    let quote = '';
    for (let index = 0; index < text.length; index += 1) {
      const character = text[index]!;
      if (quote !== '') {
        if (character === quote) quote = '';
        this.#word += character;
      } else if (character === '#' && /^\s*$/.test(text[index - 1] ?? '')) {
        break;
      } else {
        if (character === '"' || character === "'") quote = character;
        this.#take(character, text[index + 1]);
      }
    }
  }

  #take(character: string, next: string | undefined): void {
    const flow = this.#flows.at(-1);
    if (character === '{' || character === '[') {
      this.#flows.push({ isMap: character === '{', key: undefined });
      this.#word = '';
    } else if (flow !== undefined && /[,}\]]/.test(character)) {
      this.#keep(this.#word);
      this.#word = '';
      flow.key = undefined;
      if (character !== ',') this.#flows.pop();
    } else if (flow?.isMap && flow.key === undefined && character === ':' && next !== ':') {
      flow.key = unquoted(this.#word.trim());
      this.scalars.set(this.#path().join('/'), '');
      this.#word = '';
    } else {
      this.#word += character;
    }
  }

  #keep(value: string): void {
    const flow = this.#flows.at(-1);
    if (flow === undefined || flow.key !== undefined) {
      this.scalars.set(this.#path().join('/'), unquoted(value.trim()));
    }
  }
}

function unquoted(text: string): string {
  return text.replace(/^(["'])(.*)\1$/, '$2');
}
