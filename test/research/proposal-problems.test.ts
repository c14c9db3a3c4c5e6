import { expect, test } from 'vitest';
import { exampleDocument } from '../../src/api/bots.ts';
import { botSpecSchema, type BotSpec } from '../../src/bots/spec.ts';
import { proposalProblems } from '../../src/research/proposal-problems.ts';
import { TOOLS } from '../../src/research/tools.ts';

function specWith(data: object): BotSpec {
  const document = exampleDocument('kept', 10);
  const spec = document['spec'] as { readonly data: object };
  return botSpecSchema.parse({ ...document, spec: { ...spec, data: { ...spec.data, ...data } } });
}

test.each([
  ['removed', {}],
  ['shortened', { holdout: '1mo' }],
])('a proposal with a %s holdout is a problem', (_, data) => {
  const kept = specWith({ holdout: '1y' });
  expect(proposalProblems(kept, specWith(data))).toMatchObject([
    { pointer: '/spec/data/holdout', code: 'kept_from_proposals' },
  ]);
  expect(proposalProblems(kept, kept)).toEqual([]);
});

test.each([{}, { to: '2016-06-01' }])(
  'a proposal with another end of the holdout is a problem',
  (data) => {
    const kept = specWith({ holdout: '1y', to: '2015-01-01' });
    expect(proposalProblems(kept, specWith({ holdout: '1y', ...data }))).toMatchObject([
      { pointer: '/spec/data/to', code: 'kept_from_proposals' },
    ]);
    expect(proposalProblems(specWith({ to: '2015-01-01' }), specWith(data))).toEqual([]);
  },
);

test('no tool of an agent accepts the option that opens a holdout', () => {
  for (const { name, input } of TOOLS) {
    const { error } = input.safeParse({ open_holdout: true });
    expect(error?.issues, name).toContainEqual(
      expect.objectContaining({ code: 'unrecognized_keys', keys: ['open_holdout'] }),
    );
  }
});
