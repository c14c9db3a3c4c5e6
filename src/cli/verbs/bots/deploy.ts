import { ServiceError } from '../../../base/errors.ts';
import { BOT_ARGUMENT } from '../../bots.ts';
import { connect } from '../../connect.ts';
import { RUN_OPTIONS } from '../../run-options.ts';
import { requestDeployment, deployedAnswer, WAIT_OPTION } from '../../production.ts';
import { defineVerb } from '../../verb.ts';

const VENUES = ['simulated', 'exchange'] as const;

export const verb = defineVerb({
  summary: 'put a bot to work in a Kubernetes cluster',
  description:
    "Puts a version of the bot to work in a Kubernetes cluster that the server knows: one pod, which trades and reports to the server. The venue simulated fills orders from live bars, with nobody's money; exchange places them there, with the keys of a Secret that you have created in the namespace. The spec must state each limit of risk, and the server needs that cluster in its clusters_file, the exchange in its exchanges_file, and a license for live_trading, and for byoc_deployments where the cluster is a customer's.",
  arguments: { bot: BOT_ARGUMENT },
  options: {
    cluster: { value: 'name', description: 'which one; by default the only one the server knows' },
    version: RUN_OPTIONS.version,
    namespace: {
      value: 'name',
      description: "where in the cluster; by default the spec's, else the cluster's",
    },
    exchange: {
      value: 'name',
      description:
        'where bars come from, and orders go with --venue exchange; by default the only one the server knows',
    },
    venue: { value: 'name', description: 'where orders go', choices: VENUES, default: 'simulated' },
    credentialsSecret: {
      value: 'name',
      description: 'of the Secret with apiKey and secret, with --venue exchange',
    },
    leaseSecret: {
      value: 'name',
      description: 'of the Secret with lease and public_key; without, none trades at an exchange',
    },
    param: RUN_OPTIONS.param,
    replace: { description: 'stop what is there, and begin with the account that it leaves' },
    resetLosses: {
      value: 'reason',
      description: 'restart the loss limits; by default, losses of the last deployment still count',
    },
    render: {
      description:
        "print the manifests as YAML, without the Secret of the runner's token, and change nothing",
    },
    dryRun: { description: 'show how the cluster differs, and change nothing' },
    wait: WAIT_OPTION,
  },
  settings: ['server_url'],
  examples: [
    'bots deploy sma-crossover --cluster trading --wait',
    'bots deploy sma-crossover --venue exchange --credentials-secret binance-keys --lease-secret lease',
    'bots deploy sma-crossover --render | kubectl diff -f -',
    'bots deploy sma-crossover --version 3 --replace --wait',
  ],
  async run(context, { bot: bot_ref }, options) {
    const { param, replace, resetLosses, render, dryRun, wait, venue, credentialsSecret } = options;
    const { leaseSecret: lease_secret, cluster, version, namespace, exchange } = options;
    if ((venue === 'exchange') !== (credentialsSecret !== undefined)) {
      throw new ServiceError('usage', '--venue exchange and --credentials-secret go together', {
        remedy:
          'Name the Secret of the namespace that has apiKey and secret; without an exchange, leave both out.',
      });
    }
    if (Number(render) + Number(dryRun) + Number(wait) > 1) {
      throw new ServiceError('usage', '--render, --dry-run and --wait exclude each other');
    }
    const server = await connect(context);
    const answer = await requestDeployment(server, bot_ref, {
      cluster,
      version,
      namespace,
      exchange,
      venue:
        credentialsSecret === undefined
          ? { type: 'simulated' }
          : { type: 'exchange', credentials_secret: credentialsSecret },
      lease_secret,
      params: Object.fromEntries(param),
      replace,
      reset_losses: resetLosses,
      mode: render ? 'render' : dryRun ? 'dry_run' : 'apply',
    });
    if ('task_id' in answer) return deployedAnswer(context, server, bot_ref, answer, wait);
    if ('yaml' in answer) {
      return { data: answer, show: (out) => out.line(answer.yaml.trimEnd()) };
    }
    return {
      data: answer,
      show(out) {
        for (const { kind, name, change, lines } of answer.changes) {
          out.line(`${change === 'none' ? 'unchanged' : change} ${kind} ${name}`);
          for (const line of lines) out.line(`  ${line}`);
        }
      },
    };
  },
});
