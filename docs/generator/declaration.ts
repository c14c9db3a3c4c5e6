import type { Node } from 'typescript/unstable/ast';
import {
  isClassDeclaration,
  isFunctionDeclaration,
  isInterfaceDeclaration,
  isTypeAliasDeclaration,
} from 'typescript/unstable/ast/is';
import { NodeBuilderFlags, type Project, type Symbol } from 'typescript/unstable/sync';
import { anchor, blocks, bullets, code, sentence } from './markdown.ts';

export type Checker = Project['checker'];

/** An exported declaration and its section of a page. */
export interface Declaration {
  readonly name: string;
  readonly kind: 'function' | 'class' | 'type' | 'constant';
  readonly text: string;
}

interface Parts {
  readonly kind: Declaration['kind'];
  /** TypeScript without the body. */
  readonly signature: string;
  readonly members: readonly Node[];
}

/**
 * Describes a declaration by its source and docstrings.
 *
 * @param linked names that have a section on the page
 * @throws Error if it has no docstring
 */
export function declarationOf(
  name: string,
  symbol: Symbol,
  checker: Checker,
  linked: ReadonlySet<string>,
): Declaration {
  const { kind, signature, members } = partsOf(name, symbol, checker);
  const about = docOf(symbol, checker);
  if (about === '') throw new Error(`the exported ${kind} ${name} has no docstring`);
  const fields = members.map((member) => memberLine(member, checker));
  const words = new Set([signature, ...fields].join('\n').match(/\b[A-Z]\w+/g) ?? []);
  const related = [...words].filter((word) => word !== name && linked.has(word)).sort();
  const text = blocks(
    `### ${kind === 'function' ? `function ${name}` : name}`,
    about,
    `\`\`\`ts\n${signature}\n\`\`\``,
    bullets(tagLines(symbol, checker)),
    bullets(fields),
    related.length === 0
      ? undefined
      : `See ${related.map((other) => `[${code(other)}](#${anchor(other)})`).join(', ')}.`,
  );
  return { name, kind, text };
}

function partsOf(name: string, symbol: Symbol, checker: Checker): Parts {
  const node = symbol.declarations[0]!.resolve()!;
  if (isFunctionDeclaration(node)) {
    return { kind: 'function', signature: headOf(node, node.body?.getStart()), members: [] };
  }
  if (isInterfaceDeclaration(node)) {
    return { kind: 'type', signature: headOf(node, bodyStart(node)), members: node.members };
  }
  if (isClassDeclaration(node)) {
    const members = node.members.filter((member) => isPublic(member.getText()));
    return { kind: 'class', signature: headOf(node, bodyStart(node)), members };
  }
  if (isTypeAliasDeclaration(node)) {
    const text = headOf(node).replace(/;$/, '');
    const type = checker.getDeclaredTypeOfSymbol(symbol);
    const flags = NodeBuilderFlags.InTypeAlias | NodeBuilderFlags.NoTruncation;
    const isDerived = /\btypeof\b/.test(text);
    const values = isDerived ? checker.typeToString(type, undefined, flags) : '';
    return { kind: 'type', signature: isDerived ? `type ${name} = ${values}` : text, members: [] };
  }
  const type = checker.typeToString(
    checker.getTypeOfSymbol(symbol)!,
    undefined,
    NodeBuilderFlags.NoTruncation,
  );
  return { kind: 'constant', signature: `const ${name}: ${type}`, members: [] };
}

/** The text of a declaration up to a position, by default its end. */
function headOf(node: Node, end = node.getEnd()): string {
  const text = node.getSourceFile().text.slice(node.getStart(), end);
  return text.trim().replace(/^export /, '');
}

function bodyStart(node: Node): number {
  return node.getStart() + node.getText().indexOf('{');
}

/** Whether programs can use a member: it is not private, computed or a static block. */
function isPublic(member: string): boolean {
  return !/^(?:(?:override|readonly|static|async|get) )*(?:private|protected|#|\[|\{)/.test(member);
}

/** A field or method with its type, and its docstring. */
function memberLine(member: Node, checker: Checker): string {
  const { name, body } = member as Node & { readonly name?: Node; readonly body?: Node };
  const signature = headOf(member, body?.getStart())
    .replaceAll(/\/\*\*.*?\*\/|\/\/[^\n]*/gs, '')
    .replaceAll(/\s+/g, ' ')
    .replace(/^readonly /, '')
    .replace(/[;\s]*$/, '');
  const symbol = name && checker.getSymbolAtLocation(name);
  const about = symbol === undefined ? '' : docOf(symbol, checker).replaceAll(/\s*\n\s*/g, ' ');
  const tags = symbol === undefined ? [] : tagLines(symbol, checker);
  return [code(signature) + (about && `: ${about}`), ...tags.map((tag) => `  - ${tag}`)].join('\n');
}

function docOf(symbol: Symbol, checker: Checker): string {
  const text = checker
    .getDocumentationCommentOfSymbol(symbol)
    .replaceAll(/\{@link (\w+)\}/g, '`$1`');
  return text === '' ? '' : sentence(text);
}

const TAGS: Readonly<Record<string, string>> = { returns: 'Returns', throws: 'Throws' };

/** What the docstring states about parameters, the result and errors. */
function tagLines(symbol: Symbol, checker: Checker): string[] {
  return checker.getJsDocTagsOfSymbol(symbol).flatMap((tag) => {
    const text = (tag.text ?? '').replaceAll(/\s+/g, ' ').trim();
    const [parameter] = text.split(' ', 1);
    if (tag.name === 'param')
      return [`${code(parameter!)}: ${sentence(text.slice(parameter!.length))}`];
    return tag.name in TAGS ? [`${TAGS[tag.name]} ${sentence(text)}`] : [];
  });
}
