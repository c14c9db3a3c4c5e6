/** Small faults of the kind that programmers make, put into a source text one at a time. */
import { parseSync, Visitor } from 'rolldown/utils';

export interface Mutant {
  /** File, kind of fault and text: it stays the same while the text around it changes. */
  readonly name: string;
  readonly path: string;
  readonly line: number;
  /** Offsets into the text of the file. */
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

type Program = ReturnType<typeof parseSync>['program'];
type Edit = Pick<Mutant, 'start' | 'end' | 'replacement'> & { readonly kind: string };
type Range = Pick<Mutant, 'start' | 'end'>;

const BOUNDARY: Readonly<Record<string, string>> = { '<': '<=', '<=': '<', '>': '>=', '>=': '>' };
const OPPOSITE: Readonly<Record<string, string>> = {
  '<': '>=',
  '<=': '>',
  '>': '<=',
  '>=': '<',
  '===': '!==',
  '!==': '===',
  '&&': '||',
  '||': '&&',
};
const ARITHMETIC: Readonly<Record<string, string>> = {
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '%': '*',
};
const ASSIGNMENT: Readonly<Record<string, string>> = {
  '+=': '-=',
  '-=': '+=',
  '*=': '/=',
  '/=': '*=',
  '??=': '=',
  '||=': '=',
};
const METHOD = new Map([
  ['min', 'max'],
  ['max', 'min'],
  ['floor', 'ceil'],
  ['ceil', 'floor'],
  ['some', 'every'],
  ['every', 'some'],
]);
/** Methods whose result has the type of the object. */
const PASSING = new Set(['filter', 'toSorted', 'toReversed', 'slice', 'trim']);

/** Calls that write a log, whose texts and values no program depends on. */
const LOG = /^[\w.?#]*\b(?:log|logger|console)\.(?:debug|error|info|warn)\(/;

const LONGEST_NAME = 80;

export function listMutants(path: string, text: string): Mutant[] {
  const { program } = parseSync(path, text);
  const edits = findEdits(text, program);
  const counts = new Map<string, number>();
  return edits.map(({ kind, ...edit }) => {
    const before = abbreviate(text.slice(edit.start, edit.end));
    const name = `${path}: ${kind}: ${before}${edit.replacement === '' ? '' : ` → ${abbreviate(edit.replacement)}`}`;
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    const line = text.slice(0, edit.start).split('\n').length;
    return { ...edit, path, line, name: count === 1 ? name : `${name} (${count})` };
  });
}

export function applyMutant(text: string, { start, end, replacement }: Mutant): string {
  return text.slice(0, start) + replacement + text.slice(end);
}

function findEdits(text: string, program: Program): Edit[] {
  const edits: Edit[] = [];
  const skipped: Range[] = [];
  const read = ({ start, end }: Range): string => text.slice(start, end);
  const skip = ({ start, end }: Range): void => void skipped.push({ start, end });
  const add = (kind: string, { start, end }: Range, replacement: string): void =>
    void edits.push({ kind, start, end, replacement });

  function decide(test: Range | null, values: readonly ('true' | 'false')[]): void {
    if (test === null) return;
    for (const value of values) add(`condition is ${value}`, test, value);
  }

  new Visitor({
    TSLiteralType: skip,
    TSImportType: skip,
    ImportDeclaration: skip,
    ExportAllDeclaration: skip,
    ExportNamedDeclaration: ({ source }) => source && skip(source),
    Property: ({ key, computed }) => computed || skip(key),

    IfStatement: ({ test }) => decide(test, ['true', 'false']),
    ConditionalExpression: ({ test }) => decide(test, ['true', 'false']),
    WhileStatement: ({ test }) => decide(test, ['false']),
    ForStatement({ test, update }) {
      decide(test, ['false']);
      // Another step would let most loops run forever.
      if (update !== null) skip(update);
    },

    BinaryExpression(node) {
      const { operator, left, right } = node;
      const replace = (kind: string, by: string | undefined): void => {
        if (by !== undefined) add(kind, node, `(${read(left)} ${by} ${read(right)})`);
      };
      replace('boundary', BOUNDARY[operator]);
      replace('comparison', OPPOSITE[operator]);
      if (operator !== '+' || !/['`]/.test(read(node))) {
        replace('arithmetic', ARITHMETIC[operator]);
      }
    },
    LogicalExpression(node) {
      const [left, right] = [read(node.left), read(node.right)];
      if (node.operator === '??') {
        add('default', node, left);
        add('default', node, right);
      } else add('logic', node, `(${left} ${OPPOSITE[node.operator]} ${right})`);
    },
    UnaryExpression(node) {
      if (node.operator === '!') add('negation', node, read(node.argument));
      if (node.operator === '-' && node.argument.type !== 'Literal') {
        add('sign', node, read(node.argument));
      }
    },
    AssignmentExpression(node) {
      const by = ASSIGNMENT[node.operator];
      if (by !== undefined) add('assignment', node, `${read(node.left)} ${by} ${read(node.right)}`);
    },
    UpdateExpression(node) {
      add('assignment', node, `${read(node.argument)}${node.operator === '++' ? '--' : '++'}`);
    },

    ExpressionStatement(node) {
      const { expression, directive } = node;
      if (directive || /^super\b/.test(read(expression)) || LOG.test(read(expression))) skip(node);
      else add('removal', node, ';');
    },
    ThrowStatement: (node) => add('removal', node, ';'),
    BreakStatement: (node) => add('removal', node, ';'),
    ContinueStatement: (node) => add('removal', node, ';'),
    ReturnStatement(node) {
      if (node.argument === null) add('removal', node, ';');
      else if (node.argument.type !== 'Literal') add('result', node, 'return;');
    },
    AwaitExpression: (node) => add('await', node, read(node.argument)),

    MemberExpression(node) {
      const { object, optional, computed, property } = node;
      if (!optional) return;
      const end = computed ? `[${read(property)}]` : `.${read(property)}`;
      add('optional', node, `${read(object)}${end}`);
    },
    CallExpression(node) {
      const { callee } = node;
      if (callee.type !== 'MemberExpression' || callee.property.type !== 'Identifier') return;
      const { name } = callee.property;
      const other = METHOD.get(name);
      if (other !== undefined) add('method', callee.property, other);
      if (PASSING.has(name)) add('removal', node, read(callee.object));
    },

    Literal(node) {
      const { value } = node;
      if (typeof value === 'boolean') add('constant', node, String(!value));
      if (typeof value === 'number') add('constant', node, value === 0 ? '1' : '0');
      // A text of several words is a message.
      if (typeof value === 'string' && !/\s/.test(value)) {
        add('constant', node, value === '' ? "'mutant'" : "''");
      }
    },
    ArrayExpression: (node) => void (node.elements.length > 0 && add('constant', node, '[]')),
  }).visit(program);

  return edits.filter(
    (edit) => !skipped.some(({ start, end }) => start <= edit.start && edit.end <= end),
  );
}

function abbreviate(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ');
  return line.length <= LONGEST_NAME ? line : `${line.slice(0, LONGEST_NAME)}…`;
}
