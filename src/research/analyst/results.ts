import { UNDEFINED_REASONS } from '../../backtest/summary.ts';
import { formatCountOf, formatNumber } from '../../base/format.ts';
import { formatFigure, readFigure } from '../../base/format-figure.ts';
import { RUN_FIGURES, type FigureName } from '../../base/run-figures.ts';
import type { Citation } from '../answering.ts';
import { cite, day, quoted, runOf, step, type Run } from './facts.ts';
import {
  ofRuns,
  reply,
  type KnownQuestion,
  type OfPeriod,
  type Questions,
  type Reply,
} from './question.ts';

/** The most important figures first; shorter lists take the first five. */
export const HEADLINES = [
  'total_return',
  'cagr',
  'volatility',
  'sharpe',
  'max_drawdown',
  'trades',
  'win_rate',
  'fees',
  'exposure',
] as const satisfies readonly FigureName[];

/** `Sharpe ratio: 0.20`, or the reason why the figure is undefined. */
export function sayFigure({ result }: Run, name: FigureName): string {
  const { label, path } = RUN_FIGURES[name];
  const value = readFigure(result.data, name);
  if (value !== null) return `${label}: ${formatFigure(name, value)}`;
  const reason = result.data.undefined[path];
  const reasons: Readonly<Record<string, string>> = UNDEFINED_REASONS;
  return `${label}: undefined${reason === undefined ? '' : ` (${reasons[reason] ?? reason})`}`;
}

/** The JSON pointer of a figure in a result. */
export function pointerOf(name: FigureName): string {
  return `/${RUN_FIGURES[name].path.replace('.', '/')}`;
}

/** Cites the figure and, if it is undefined, the reason. */
function citeFigure({ result }: Run, name: FigureName): Citation[] {
  const { path } = RUN_FIGURES[name];
  const isUndefined = path in result.data.undefined;
  const why = isUndefined ? [cite(result, `/undefined/${path}`, `${path} undefined`)] : [];
  return [cite(result, pointerOf(name)), ...why];
}

function answerWith(run: Run, of: readonly FigureName[]): Reply {
  const citations = of.flatMap((figure) => citeFigure(run, figure));
  const lines = of.map((figure) => sayFigure(run, figure));
  if (lines.length === 1) return reply(`${lines[0]}, in ${run.said}.`, citations);
  return reply([`In ${run.said}:`, ...lines.map((line) => `- ${line}`)], citations);
}

function figures(
  id: string,
  example: string,
  tells: string,
  keys: readonly string[],
  ...of: readonly FigureName[]
): KnownQuestion {
  return {
    id,
    example,
    tells,
    keys,
    answer: async (facts) => answerWith(await runOf(facts), of),
  };
}

/** One that is known of part of a run, too. */
function partly(what: OfPeriod, question: KnownQuestion): KnownQuestion {
  return { ...question, ofRun: what };
}

/** Of a result with lines of its own. */
function ofRun(
  id: string,
  example: string,
  tells: string,
  keys: readonly string[],
  answer: (run: Run) => Reply,
): KnownQuestion {
  return { id, example, tells, keys, answer: async (facts) => answer(await runOf(facts)) };
}

export const RESULTS: Questions = ofRuns({
  title:
    'Results of the newest run with the values of the spec, or of the one that you name by its id or its version',
  questions: [
    figures(
      'summary',
      'What are the results?',
      'the figures that matter most',
      [
        'summary|summarise|summarize|overview',
        'result',
        'result newest|last|latest run|backtest',
        'how did do',
        'perform|performance',
      ],
      ...HEADLINES,
    ),
    partly(
      'return',
      figures(
        'total_return',
        'What is the total return?',
        'gain on the cash at the start',
        [
          'return',
          'total return',
          'profit',
          'much gain|earn|make|made',
          'profitable',
          'profitable bot|strategy',
          'pnl',
          'p l',
        ],
        'total_return',
      ),
    ),
    figures(
      'cagr',
      'What is the CAGR?',
      'return per calendar year, compounded',
      [
        'cagr',
        'compound growth',
        'growth rate',
        'annualised|annualized return',
        'return per year',
        'average|mean year|yearly|annual|annually|annum',
        'average|mean return|earn|made|make|gain|profit year|yearly|annual|annually|annum',
        'much earn|made|make|gain per year|annum',
      ],
      'cagr',
    ),
    figures(
      'volatility',
      'How volatile is it?',
      'deviation of the returns, per year',
      ['volatility|volatile', 'standard deviation'],
      'volatility',
    ),
    figures(
      'risk_figures',
      'How risky was it?',
      'volatility, drawdown, value at risk and what is beyond it',
      ['risky', 'risk figure|measure|statistic', 'how risky'],
      'volatility',
      'max_drawdown',
      'var_95',
      'cvar_95',
    ),
    figures(
      'sharpe',
      'What is the Sharpe ratio?',
      'mean return over its deviation, per year',
      ['sharpe'],
      'sharpe',
    ),
    figures(
      'sortino',
      'What is the Sortino ratio?',
      'mean return over its downside deviation, per year',
      ['sortino'],
      'sortino',
    ),
    figures(
      'calmar',
      'What is the Calmar ratio?',
      'yearly return over the maximum drawdown',
      ['calmar'],
      'calmar',
    ),
    partly(
      'drawdown',
      figures(
        'max_drawdown',
        'What is the maximum drawdown?',
        'the deepest fall below a former peak',
        [
          'drawdown',
          'max|maximum|maximal|worst|largest|biggest|deepest drawdown',
          'how bad|deep|large|big drawdown',
          'dd',
          'max|maximum dd',
          'mdd',
        ],
        'max_drawdown',
      ),
    ),
    figures(
      'drawdown_days',
      'How long was the longest drawdown?',
      'calendar days below a former peak',
      [
        'long|longest|length|duration drawdown',
        'many days drawdown',
        'underwater',
        'below|under peak',
      ],
      'max_drawdown_days',
    ),
    figures(
      'var',
      'What is the value at risk?',
      '5th percentile of the returns of a period',
      ['var', 'value risk'],
      'var_95',
    ),
    figures(
      'cvar',
      'What is the CVaR?',
      'mean of the returns beyond the value at risk',
      ['cvar', 'expected shortfall', 'conditional value risk'],
      'cvar_95',
    ),
    figures(
      'best_day',
      'What was the best day?',
      'the highest return of a period',
      ['best|largest|biggest day'],
      'best_day',
    ),
    figures(
      'worst_day',
      'What was the worst day?',
      'the lowest return of a period',
      ['worst|lowest day', 'largest|biggest loss day'],
      'worst_day',
    ),
    figures(
      'equity_start',
      'How much money was there at the start?',
      'equity at the start',
      ['money|capital|equity|cash start|initial|starting|beginning'],
      'start_equity',
    ),
    figures(
      'equity_end',
      'What is the equity at the end?',
      'equity at the last bar',
      ['equity', 'money|capital|equity|balance end|final|ending'],
      'end_equity',
    ),
    figures(
      'equity_peak',
      'What was the highest equity?',
      'the peak of the equity',
      ['peak|highest|high|top equity|capital', 'equity peak'],
      'peak_equity',
    ),
    figures(
      'exposure',
      'How much of the time was it invested?',
      'share of the bars with a position',
      ['exposure', 'time market', 'invest'],
      'exposure',
    ),
    ofRun(
      'window',
      'Which days did the run see?',
      'first and last bar, and how many',
      [
        'which|what day|period|window',
        'many bar',
        'first|last bar',
        'which|between date',
        'date run|backtest',
        'backtest|test period|window',
        'window',
      ],
      (run) => {
        const { from, to, bars } = run.result.data.window;
        const text = `${formatCountOf(bars, 'bar')} from ${day(from)} to ${day(to)}, in ${run.said}.`;
        return reply(
          text,
          ['from', 'to', 'bars'].map((name) => cite(run.result, `/window/${name}`)),
        );
      },
    ),
    ofRun(
      'conventions',
      'By which conventions are the figures worked out?',
      'sampling, periods per year and such',
      [
        'convention',
        'how figure|statistic compute|calculate|work',
        'period per year',
        'many period per year assume',
        'risk free',
      ],
      (run) => {
        const names = [
          'sampling',
          'periods_per_year',
          'year_days',
          'risk_free',
          'ddof',
          'return_kind',
          'downside',
          'trades',
        ];
        const citations = names.map((name) => cite(run.result, `/conventions/${name}`, name));
        const lines = citations.map(({ figure, value }) => `- ${figure}: ${value}`);
        return reply([`In ${run.said}:`, ...lines], citations);
      },
    ),
    ofRun(
      'gates',
      'Did it pass its gates?',
      'each gate, its value and whether it passed',
      ['gate', 'pass|fail gate|criteria|criterion'],
      (run) => {
        const { gates } = run.result.data;
        if (gates.length === 0) {
          return reply(
            `The spec has no gates (\`metrics\`), in ${run.said}.`,
            cite(run.result, '/gates'),
          );
        }
        const lines = gates.map(({ name, op, threshold, value, pass }) => {
          const reached = value === null ? 'undefined' : formatNumber(value);
          return `- ${name} ${op} ${threshold}: ${reached}, ${pass ? 'passed' : 'failed'}`;
        });
        const citations = gates.flatMap(({ name }, i) =>
          ['value', 'threshold', 'pass'].map((part) =>
            cite(run.result, `/gates/${i}/${part}`, `gate ${name} ${part}`),
          ),
        );
        const passed = gates.filter(({ pass }) => pass).length;
        return reply(
          [`${passed} of ${gates.length} gates passed, in ${run.said}:`, ...lines],
          citations,
        );
      },
    ),
    ofRun(
      'findings',
      'What should I doubt about the result?',
      'findings, such as that holding is better',
      [
        'finding',
        'doubt|distrust|suspicious',
        'doubt|distrust result|run|backtest',
        'warning',
        'wrong|problem result|run|backtest',
      ],
      (run) => {
        const { findings } = run.result.data;
        const lines = findings.map(
          ({ code, severity, issue }) => `- ${code} (${severity}): ${issue}`,
        );
        const citations = findings.map(({ code }, i) =>
          cite(run.result, `/findings/${i}/issue`, code),
        );
        if (lines.length === 0)
          return reply(`Nothing was found, in ${run.said}.`, cite(run.result, '/findings'));
        return reply(
          [`${formatCountOf(lines.length, 'finding')}, in ${run.said}:`, ...lines],
          citations,
        );
      },
    ),
    ofRun(
      'holding',
      'Was it better than buy and hold?',
      'what holding made, where that was more',
      [
        'buy hold|holding',
        'better|worse|beat|beaten|than hold|holding',
        'better|worse|beat|beaten|than buy hold|holding',
        'beat|beaten|outperform|underperform market|benchmark',
      ],
      (run) => {
        const { findings } = run.result.data;
        const i = findings.findIndex(({ code }) => code === 'holding_is_better');
        const made = sayFigure(run, 'total_return');
        if (i === -1) {
          const text = `Nothing was found that says that holding had been better. ${made}, in ${run.said}.`;
          return reply(text, cite(run.result, '/findings'), citeFigure(run, 'total_return'));
        }
        return reply(
          `No: ${findings[i]!.issue} That is in ${run.said}.`,
          cite(run.result, `/findings/${i}/issue`, 'holding_is_better'),
          citeFigure(run, 'total_return'),
        );
      },
    ),
    figures(
      'ambiguity',
      'How many bars were ambiguous?',
      'bars with several possible orders of fills',
      ['ambiguous|ambiguity', 'many bar ambiguous'],
      'ambiguous_bars',
    ),
    figures(
      'margin_calls',
      'Were there margin calls?',
      'how many',
      ['margin call'],
      'margin_calls',
    ),
    ofRun(
      'hashes',
      'What are the hashes of the result?',
      'SHA-256 of events, trades and equity',
      ['hash|sha256|checksum', 'hash result|event|trade|equity', 'hash file'],
      (run) => {
        const citations = ['events', 'trades', 'equity'].map((name) =>
          cite(run.result, `/hashes/${name}`),
        );
        return reply([`SHA-256, in ${run.said}:`, ...citations.map(sayCited)], citations);
      },
    ),
    ofRun(
      'lock',
      'What decides the result?',
      'the lock: spec, engine, strategy, data, seed',
      [
        'lock',
        'decide result',
        'reproduce|reproducible',
        'reproduce|reproducible result',
        'seed',
        'engine version',
      ],
      (run) => {
        const { data } = run.result.data.lock;
        const pointers = [
          'digest',
          'spec',
          'engine',
          'seed',
          'strategy',
          ...Object.keys(data)
            .slice(0, 20)
            .map((symbol) => `data/${step(symbol)}`),
        ];
        const citations = pointers.map((pointer) => cite(run.result, `/lock/${pointer}`));
        return reply(
          [`Equal locks give equal events. In ${run.said}:`, ...citations.map(sayCited)],
          citations,
        );
      },
    ),
  ],
});

export function sayCited({ figure, value }: Citation): string {
  return `- ${figure}: ${typeof value === 'string' ? quoted(value) : value}`;
}

export const TRADING: Questions = ofRuns({
  title: 'Trades, costs and orders of that run',
  questions: [
    figures(
      'trade_count',
      'How many trades were there?',
      'closed trades',
      ['trade', 'many trade', 'many trade make|made|close|closed', 'number|count trade'],
      'trades',
    ),
    figures(
      'win_rate',
      'What is the win rate?',
      'share of the closed trades that gained',
      ['win|winning|hit|success rate|ratio', 'share|percent trade won|win|winning|profitable'],
      'win_rate',
    ),
    figures(
      'profit_factor',
      'What is the profit factor?',
      'gains over losses of the closed trades',
      ['profit factor'],
      'profit_factor',
    ),
    figures(
      'expectancy',
      'What is the expectancy of a trade?',
      'mean net profit of a closed trade, in money',
      ['expectancy', 'expected profit trade', 'expectancy trade', 'average|mean profit trade'],
      'expectancy',
    ),
    figures(
      'average_trade',
      'What does an average trade return?',
      'mean return of a closed trade',
      ['average|mean trade', 'average|mean return trade'],
      'average_trade',
    ),
    figures(
      'sqn',
      'What is the system quality number?',
      'SQN over the profits of the trades',
      ['sqn', 'system quality'],
      'sqn',
    ),
    figures(
      'kelly',
      'What is the Kelly fraction?',
      'share of the capital by the formula of Kelly',
      ['kelly', 'kelly bet', 'kelly would bet'],
      'kelly',
    ),
    figures(
      'costs',
      'What did trading cost?',
      'fees, slippage and turnover',
      ['cost', 'trading cost', 'expensive'],
      'fees',
      'slippage',
      'turnover',
    ),
    figures(
      'fees',
      'How much were the fees?',
      'all fees, in money',
      ['fee', 'commission', 'pay|paid fee|commission'],
      'fees',
    ),
    figures(
      'slippage',
      'How much was the slippage?',
      'all slippage, in money',
      ['slippage', 'large|big|high slippage'],
      'slippage',
    ),
    figures(
      'turnover',
      'What is the turnover?',
      'value traded per year over the mean equity',
      ['turnover'],
      'turnover',
    ),
    figures(
      'orders',
      'How many orders were submitted?',
      'orders, and what became of them',
      ['order', 'order submitted|sent|placed', 'many order'],
      'submitted_orders',
      'filled_orders',
      'canceled_orders',
      'expired_orders',
      'rejected_orders',
      'denied_orders',
      'working_orders',
    ),
    figures(
      'orders_filled',
      'How many orders were filled?',
      'orders filled, and fills',
      ['order filled|fill', 'many order filled|fill', 'many fill'],
      'filled_orders',
      'fills',
    ),
    ofRun(
      'refusals',
      'How many orders were rejected or denied, and why?',
      'by the code of the reason',
      [
        'order rejected|reject|denied|refused',
        'rejected|reject|rejection',
        'denied|denial|deny',
        'denied|denial|rejected|refused code|reason|why',
      ],
      (run) => {
        const reasons = Object.keys(run.result.data.orders.reasons);
        const counts = [
          cite(run.result, '/orders/rejected'),
          cite(run.result, '/orders/denied'),
          ...reasons
            .slice(0, 40)
            .map((reason) => cite(run.result, `/orders/reasons/${step(reason)}`, reason)),
        ];
        const [rejected, denied, ...by] = counts;
        const text = `Orders rejected: ${rejected!.value}, denied: ${denied!.value}, in ${run.said}.`;
        return reply([text, ...by.map(sayCited)], counts);
      },
    ),
  ],
});
