import { valueOf } from './gates.ts';
import type { Gate } from './summary.ts';

/** Renders the gates as a JUnit XML report with one test case each, for CI systems. */
export function junit(gates: readonly Gate[], name: string): string {
  const failures = gates.filter((gate) => !gate.pass).length;
  const counts = `tests="${gates.length}" failures="${failures}" errors="0" skipped="0"`;
  const suite = attribute(name);
  const lines = [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${counts}>`,
    `  <testsuite name="${suite}" ${counts}>`,
    ...gates.map((gate) => testCase(gate, suite)),
    '  </testsuite>',
    '</testsuites>',
  ];
  return `${lines.join('\n')}\n`;
}

function testCase(gate: Gate, suite: string): string {
  const condition = `${gate.name} ${gate.op} ${gate.threshold}`;
  const head = `    <testcase classname="${suite}" name="${attribute(condition)}"`;
  if (gate.pass) return `${head}/>`;
  const message = `${gate.name} is ${valueOf(gate)}; required: ${gate.op} ${gate.threshold}`;
  return [
    `${head}>`,
    `      <failure type="gate_not_met" message="${attribute(message)}"/>`,
    '    </testcase>',
  ].join('\n');
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  // XML parsers normalize unescaped white space in attributes to blanks.
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
};

/** Characters outside XML 1.0's Char production, which are invalid even when escaped. */
const NOT_XML = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu;

const attribute = (text: string): string =>
  text.replace(NOT_XML, '\u{FFFD}').replace(/[&<>"\t\n\r]/g, (character) => ENTITIES[character]!);
