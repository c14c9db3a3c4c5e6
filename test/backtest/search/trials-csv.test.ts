import { expect, it } from 'vitest';
import { trialLines } from '../../../src/backtest/search/trials-csv.ts';

it('quotes names and texts of parameters, and lets no spreadsheet run them as formulas', () => {
  const params = { 'a,"b"': 'x,y', '=1+1': '@SUM(A1)', '-p': -1 };
  const search = {
    results: { done: 1, failed: 1, lastRung: 0, inOrder: () => [{ index: 0, params, error: 'e' }] },
    trials: {},
    parts: [],
  } as unknown as Parameters<typeof trialLines>[0];
  expect([...trialLines(search)]).toEqual([
    `"a,""b""",'=1+1,'-p,error\n`,
    `"x,y",'@SUM(A1),-1,e\n`,
  ]);
});
