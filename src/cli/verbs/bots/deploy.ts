import { ServiceError } from '../../../base/errors.ts';
import { BOT_ARGUMENT } from '../../bots.ts';
import { connect } from '../../connect.ts';
import { RUN_OPTIONS } from '../../run-options.ts';
import { requestDeployment, deployedAnswer, WAIT_OPTION } from '../../production.ts';
import { defineVerb } from '../../verb.ts';

const VENUES = ['simulated', 'exchange'] as const;

export const verb = defineVerb({
  summary: 'deploy a bot to a Kubernetes cluster',
  description:
    "Deploys a version of the bot to a Kubernetes cluster that is configured on the server, as one pod that trades and reports to the server. The venue simulated fills orders from live bars, without real money; the venue exchange places orders at the exchange, with the keys of a Secret that you have created in the namespace. The spec must state every risk limit. The server needs the cluster in its clusters_file, the exchange in its exchanges_file, and a license for live_trading. For a customer's cluster, it also needs a license for byoc_deployments.",
  arguments: { bot: BOT_ARGUMENT },
  options: {
    cluster: {
      value: 'name',
      description: 'cluster; by default the only one configured on the server',
    },
    version: RUN_OPTIONS.version,
    namespace: {
      value: 'name',
      description: 'namespace; by default that of the spec, else that of the cluster',
    },
    exchange: {
      value: 'name',
      description:
        'source of bars and, with --venue exchange, destination of orders; by default the only one configured on the server',
    },
    venue: {
      value: 'name',
      description: 'destination of orders',
      choices: VENUES,
      default: 'simulated',
    },
    credentialsSecret: {
      value: 'name',
      description: 'Secret with apiKey and secret, for --venue exchange',
    },
    leaseSecret: {
      value: 'name',
      description: 'Secret with lease and public_key, required to trade at an exchange',
    },
    param: RUN_OPTIONS.param,
    replace: { description: 'stop the current deployment and continue with its account' },
    resetLosses: {
      value: 'reason',
      description: 'restart the loss limits; by default, losses of the last deployment count',
    },
    render: {
      description:
        "print the manifests as YAML, without the Secret of the runner's token, and change nothing",
    },
    dryRun: { description: 'show the differences from the cluster and change nothing' },
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
          'Name the Secret with apiKey and secret in the namespace; without an exchange, omit both options.',
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
