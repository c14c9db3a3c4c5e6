import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkBot } from '../../src/bots/load-bot.ts';
import { NO_RISK_LIMITS } from '../../src/engine/config.ts';
import { EXAMPLES, exampleBots as files } from './example-bots.ts';

describe('the examples', () => {
  it('include sma-crossover.yaml', () => {
    expect(files).toContain('sma-crossover.yaml');
    expect(files).toContain('custom-strategy.yaml');
    expect(files).toContain('paper.yaml');
    expect(files).toContain('research.yaml');
  });

  it.each(files)('include %s, without problems and with the slug of its file name', (name) => {
    const { bot, problems } = checkBot(join(EXAMPLES, name));
    expect(problems).toEqual([]);
    expect(`${bot?.spec.metadata.slug}.yaml`).toBe(name);
  });

  it('include paper.yaml, which sets every risk limit and uses data of a catalogue', () => {
    const { spec } = checkBot(join(EXAMPLES, 'paper.yaml')).bot!.spec;
    const optional = [
      'price_collar_period',
      'messages_kept_for_cancels',
      'repeated_execution',
      'permitted',
    ];
    expect(Object.keys(spec.risk!).toSorted()).toEqual(
      [...Object.keys(NO_RISK_LIMITS), ...optional].toSorted(),
    );
    expect(spec.data.source).toBe('catalog://SPX');
  });
});
