import { valueOf } from './gates.ts';
import type { Gate } from './summary.ts';

/** The gates as a JUnit XML report, one test case each, for CI systems that display such files. */
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
  const message = `${gate.name} is ${valueOf(gate)}, wanted ${gate.op} ${gate.threshold}`;
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
  // Unescaped, white space in an attribute is read back as blanks.
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
};

/** Everything outside XML 1.0's Char production, escaped or not, makes a document unreadable. */
const NOT_XML = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu;

const attribute = (text: string): string =>
  text.replace(NOT_XML, '\u{FFFD}').replace(/[&<>"\t\n\r]/g, (character) => ENTITIES[character]!);
