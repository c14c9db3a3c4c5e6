import { describe, expect, it } from 'vitest';
import { junit } from '../../src/backtest/junit.ts';

describe('a JUnit report', () => {
  it('has a case for each gate, with the required value', () => {
    const report = junit(
      [
        { name: 'sharpe', op: '>=', threshold: 0.5, value: 0.2, pass: false },
        { name: 'max_drawdown', op: '>=', threshold: -0.5, value: -0.31, pass: true },
        {
          name: 'win_rate',
          op: '<',
          threshold: 0.9,
          value: null,
          pass: false,
          reason: 'no_closed_trades',
        },
      ],
      'sma-crossover',
    );
    expect(report).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="3" failures="2" errors="0" skipped="0">
  <testsuite name="sma-crossover" tests="3" failures="2" errors="0" skipped="0">
    <testcase classname="sma-crossover" name="sharpe &gt;= 0.5">
      <failure type="gate_not_met" message="sharpe is 0.2; required: &gt;= 0.5"/>
    </testcase>
    <testcase classname="sma-crossover" name="max_drawdown &gt;= -0.5"/>
    <testcase classname="sma-crossover" name="win_rate &lt; 0.9">
      <failure type="gate_not_met" message="win_rate is undefined: no trade was closed; required: &lt; 0.9"/>
    </testcase>
  </testsuite>
</testsuites>
`);
  });

  it('is valid without gates', () => {
    expect(junit([], 'x')).toContain('<testsuite name="x" tests="0" failures="0"');
  });

  it('escapes what XML reserves and replaces what it forbids', () => {
    const report = junit([], `a<b>&"c"\u0000\uD800\u001F\uFFFE\t\nd 😀 'e'`);
    expect(report).toContain(
      `name="a&lt;b&gt;&amp;&quot;c&quot;\uFFFD\uFFFD\uFFFD\uFFFD&#9;&#10;d 😀 'e'"`,
    );
  });
});
