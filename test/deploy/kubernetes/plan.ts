import type { DeployPlan } from '../../../src/deploy/kubernetes/manifests.ts';

/** A plan with all optional fields. */
export function testPlan(changes: Partial<DeployPlan> = {}): DeployPlan {
  return {
    deployment_id: '01935b1c-7d4e-7a3b-9c55-5f0e8d3a2b17',
    bot_id: '01935b1c-0000-7a3b-9c55-aaaaaaaaaaaa',
    slug: 'sma-crossover',
    version: 3,
    spec_hash: 'a'.repeat(64),
    namespace: 'bots',
    image: 'registry.invalid/service-local:1',
    files: {
      'run.json': '{"apiVersion":"run/v1","kind":"Run"}',
      'bot.json': '{"note":"yes: no\\n---"}',
      'bundle.json': '{"strategy.ts":"export const a = 1;\\n"}',
    },
    credentials_secret: 'binance-keys',
    lease_secret: 'license',
    control_url: 'https://bots.example:8443',
    ...changes,
  };
}
