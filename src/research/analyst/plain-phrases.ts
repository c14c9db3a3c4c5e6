import type { Slot } from './tags.ts';
import { EXIT_PHRASES } from './exits.ts';

/** Meanings that are a word of a slot. Of several phrases at the same place the longest counts. */
export const PLAIN_PHRASES: readonly (readonly [slot: Slot, value: string, phrases: string])[] = [
  // Figures of a run
  ['measure', 'sharpe', 'sharpe(?: ratio)?'],
  ['measure', 'sortino', 'sortino(?: ratio)?'],
  ['measure', 'calmar', 'calmar(?: ratio)?|mar ratio'],
  [
    'measure',
    'total_return',
    '(?:total |overall |cumulative |net |percentage )?(?:returns?|performance|roi)|returned|return on (?:capital|investment)|perform(?:ed)?',
  ],
  [
    'measure',
    'profit',
    '(?:net |total |overall )?(?:profits?|pnl|earnings)|made|makes?|earn(?:ed|s)?|profit and loss|net result',
  ],
  [
    'measure',
    'cagr',
    'cagr|compound(?:ed)? (?:annual |yearly )?(?:growth(?: rate)?|returns?)(?: (?:per annum|p a|per year|a year))?|annual growth rate|annuali[sz]ed (?:total )?returns?|(?:per annum|p a) returns?|returns? (?:per annum|p a)',
  ],
  [
    'measure',
    'annual_mean',
    '(?:average|avg|mean) (?:annual|yearly) (?:returns?|performance|gain)',
  ],
  [
    'measure',
    'volatility',
    '(?:annual |annuali[sz]ed |yearly )?(?:volatility|volatile|vola?)|(?:annuali[sz]ed |annual )?(?:standard deviation|std dev|stdev|std)(?: of (?:the )?returns?)?',
  ],
  [
    'measure',
    'max_drawdown',
    '(?:(?:max|maximum|maximal|worst|biggest|largest|deepest|greatest|highest) )?(?:drawdown|dd)|mdd|maxdd|(?:largest|biggest|worst|maximum|max) peak to (?:trough|valley) (?:loss|decline|drop|fall)',
  ],
  [
    'measure',
    'max_drawdown_days',
    '(?:longest|max|maximum) (?:drawdown(?: (?:duration|period|length|time))?|time (?:under ?water|below (?:the |its )?peak)|under ?water (?:period|time|stretch|phase))|(?:max |maximum )?drawdown (?:duration|length)|(?:length|duration) of (?:the )?(?:longest|max|maximum) drawdown|how long (?:was|is) (?:it|the bot|the strategy) (?:under ?water|(?:below|under) (?:its |the |a )?(?:former )?(?:peak|high))',
  ],
  ['measure', 'var_95', '(?:95% )?(?:var|value at risk)(?: 95%?)?'],
  ['measure', 'cvar_95', '(?:95% )?(?:cvar|expected shortfall|conditional (?:var|value at risk))'],
  ['measure', 'fees', '(?:cost in )?(?:trading )?(?:fees?|commissions?)'],
  ['measure', 'slippage', 'slippage(?: costs?)?'],
  ['measure', 'costs', '(?:total )?(?:trading |transaction )?costs?|cost to trade'],
  ['measure', 'turnover', '(?:annual |yearly )?turnover'],
  [
    'measure',
    'exposure',
    'exposure|time in (?:the )?market|(?:what )?(?:(?:percent(?:age)?|share|fraction|proportion|how much) of|how much) (?:the )?time (?:(?:was|is) (?:it|the bot|the strategy) )?(?:in (?:the |a )?(?:market|position)|invested|long)|(?:was|is) (?:it|the bot|the strategy) invested',
  ],
  ['measure', 'profit_factor', 'profit factor|pf'],
  ['measure', 'expectancy', 'expectancy|expected value|expected profit'],
  [
    'measure',
    'win_rate',
    '(?:win|winning|hit|success) ?(?:rate|ratio|percentage|percent|pct)|winrate|batting average|percent(?:age)? profitable|accuracy|strike rate',
  ],
  ['measure', 'loss_rate', '(?:loss|losing|lose) ?(?:rate|percentage)'],
  [
    'measure',
    'payoff',
    '(?:payoff|pay off|win ?(?:to |/ ?)?loss|reward (?:to |/ ?)?risk|risk (?:to |/ ?)?reward) ratio',
  ],
  [
    'measure',
    'payoff',
    '(?:ratio of )?(?:the )?(?:average|avg|mean) (?:win|winner|winning trade) (?:to|/|over|divided by|versus) (?:the )?(?:average|avg|mean) (?:loss|loser|losing trade)',
  ],
  ['measure', 'gross_profit', 'gross (?:profits?|gains?)'],
  ['measure', 'gross_loss', 'gross loss(?:es)?'],
  ['measure', 'sqn', 'sqn|system quality(?: number)?'],
  [
    'measure',
    'kelly',
    '(?:how much )?(?:would |does |did )?kelly(?: fraction| criterion| bet)?(?: (?:say|bet))?',
  ],
  ['measure', 'alpha', 'alpha|jensen alpha'],
  ['measure', 'beta', 'beta(?: to (?:the )?(?:benchmark|market|index))?'],
  [
    'measure',
    'correlation',
    'correlat(?:ion|ed) (?:with|to) (?:the |its )?(?:benchmark|buy and hold(?:ing)?|market)',
  ],
  ['measure', 'tracking_error', 'tracking error'],
  ['measure', 'information_ratio', 'information ratio'],
  ['measure', 'deflated_sharpe', 'deflated sharpe(?: ratio)?|dsr'],
  [
    'measure',
    'start_equity',
    '(?:start|starting|initial|beginning|opening) (?:capital|equity|balance|cash|money|account(?: value| size)?)|(?:with )?how much (?:capital|equity|cash|money) did (?:it|we|the bot) start(?: with)?|(?:capital|equity|balance|cash|money) (?:at the (?:start|beginning)|(?:did )?(?:it |we )?start(?:ed)? with)',
  ],
  [
    'measure',
    'end_equity',
    '(?:end|ending|final|closing|last) (?:capital|equity|balance|cash|money|account(?: value| size)?)|(?:capital|equity|balance|money)(?: (?:was|is|did (?:it|we) have))?(?: left)? (?:at the end|in the end)',
  ],
  [
    'measure',
    'peak_equity',
    '(?:highest|peak|maximum|max|top) (?:equity|balance|account value|capital)|equity (?:peak|high|maximum)',
  ],
  ['measure', 'equity', 'equity|balance|account value|account balance|portfolio value'],
  [
    'measure',
    'orders',
    'orders?(?: (?:[a-z]+ ){0,2}(?:submitted|sent|send|submit|placed|place|issued))?',
  ],
  [
    'measure',
    'filled_orders',
    '(?:filled|executed) orders?|fills|orders? (?:(?:got|were|was) )?(?:filled|executed)',
  ],
  [
    'measure',
    'ambiguous_bars',
    '(?:bars (?:were|are|was) )?ambiguous(?: bars)?|ambiguity|how many bars (?:were|are) ambiguous',
  ],
  ['measure', 'margin_calls', 'margin calls?'],
  ['measure', 'total_return', 'how profitable (?:is|was)'],
  ['measure', 'risk', '(?:how )?risky|risk (?:figures|measures|statistics)'],
  [
    'measure',
    'summary',
    'summary|overview|(?:key|main|headline) (?:figures|stats|statistics|metrics|numbers)|results',
  ],
  // Attributes of trades and days
  [
    'measure',
    'duration',
    'duration|holding (?:period|time|duration)s?|hold times?|length|lasted(?: for)?|held|holds?|days in (?:a )?trade',
  ],
  ['measure', 'quantity', 'quantit(?:y|ies)|units|position size|size'],
  ['measure', 'entry_price', '(?:entry|opening|buy|purchase) prices?'],
  ['measure', 'exit_price', '(?:exit|closing|sell|sale) prices?'],
  // Items and filters
  [
    'subject',
    'trade',
    '(?:closed |round trip )?trades?|deals?|round trips?|roundtrips?|transactions?',
  ],
  ['subject', 'position', 'positions?'],
  ['subject', 'day', '(?:trading )?days?|daily|intra day'],
  ['subject', 'week', 'weeks?|weekly'],
  ['subject', 'month', '(?:calendar )?months?|monthly'],
  ['subject', 'quarter', '(?:calendar )?quarters?|quarterly'],
  ['subject', 'year', '(?:calendar )?years?|yearly|annual(?:ly)?'],
  ['subject', 'weekday', 'weekdays?|days? of the week'],
  ['subject', 'hour', 'hours?(?: of (?:the )?day)?|times? of (?:the )?day'],
  ['subject', 'drawdown', 'drawdowns|drawdown periods?|dds'],
  [
    'outcome',
    'win',
    'wins?|winners?|winning|won|gains?|gained|profitable|positive|(?:made|make|makes|making) (?:a )?(?:profit|gain|money)|(?:with|in|at) (?:a )?(?:profit|gain)|in the (?:green|black|money)|(?:up|green)(?= (?:days?|weeks?|months?|quarters?|years?|trades?))',
  ],
  [
    'outcome',
    'lose',
    'loss(?:es)?|losers?|losing|lost|loses?|unprofitable|negative|(?:made|make|makes|making|took|take) (?:a )?loss|(?:lost|lose|loses|losing) money|(?:with|in|at) a loss|in the red|(?:down|red)(?= (?:days?|weeks?|months?|quarters?|years?|trades?))|when (?:it|we|the bot) (?:lose|loses|lost)',
  ],
  ['outcome', 'not lose', '(?:were|was|are) not (?:a )?(?:losers?|losing|negative)|non losing'],
  [
    'outcome',
    'not win',
    '(?:were|was|are) not (?:a )?(?:winners?|winning|profitable|positive)|non winning|not profitable',
  ],
  ['outcome', 'flat', 'break ?even|flat|scratch(?:ed)?'],
  ['side', 'long', 'longs?|(?:on the )?long side|bought long|(?:go|went|going) long'],
  ['side', 'short', 'shorts?|(?:on the )?short side|sold short|(?:go|went|going) short|shorted'],
  [
    'status',
    'open',
    'open (?:positions?|trades?) (?:at|by) the end(?: of the (?:run|test|backtest))?|(?:still |left )?open(?: (?:at|by) the end(?: of the (?:run|test|backtest))?)?|not (?:yet )?closed|unclosed',
  ],
  ['status', 'closed', 'closed|completed|finished'],
  ...EXIT_PHRASES,
  [
    'edge',
    'entry',
    '(?:opened|entered|entering|entry|entries|initiated|started|begun|enter|begin|began|starts?|open(?:ed)? up|by (?:their |its )?entry)',
  ],
  ['edge', 'exit', '(?:exited|exit|exits|ended|end|closing|by (?:their |its )?exit|close)'],
  // Statistics, ranks and kinds of answers
  ['stat', 'mean', 'average|avg|mean|averaged|on average|typical(?:ly)?|in the mean'],
  ['stat', 'median', 'median'],
  [
    'stat',
    'sum',
    'sum(?: of)?|total|in total|altogether|combined|summed|overall|in all|all together|added up',
  ],
  ['stat', 'std', '(?:standard deviation|std dev|stdev|std) of(?: the)? (?:trades?|trade)'],
  ['rank', 'top', 'top'],
  ['rank', 'best', 'best|most profitable|most successful|strongest'],
  ['rank', 'worst', 'worst|poorest|weakest|least profitable'],
  [
    'rank',
    'large',
    'fattest|biggest|largest|highest|greatest|deepest|max|maximum|most|steepest|severest',
  ],
  ['rank', 'small', 'smallest|lowest|tiniest|least'],
  ['rank', 'long', 'longest|for the longest'],
  ['rank', 'short', 'shortest|briefest|quickest'],
  ['rank', 'first', 'first|earliest'],
  ['rank', 'last', 'last|latest|most recent|newest|final'],
  ['rank', 'large', 'at most|at worst|at the most'],
  [
    'by',
    'profit',
    'by (?:profit|pnl|money|dollars?|absolute (?:profit|pnl)|dollar (?:profit|pnl))|in absolute terms|(?:ranked|sorted|ordered) by (?:profit|pnl|money)',
  ],
  [
    'by',
    'total_return',
    '(?:ranked |sorted |ordered )?by (?:percent(?:age)?(?: (?:gain|return|loss|profit))?|returns?|%)',
  ],
  ['by', 'duration', '(?:ranked |sorted |ordered )?by (?:duration|holding (?:time|period)|length)'],
  ['by', 'quantity', '(?:ranked |sorted |ordered )?by (?:quantity|size|units)'],
  ['by', 'fees', '(?:ranked |sorted |ordered )?by (?:fees?|commissions?)'],
  [
    'unit',
    'percent',
    'in (?:percent(?:age)?(?: terms)?|relative terms|%)|percent(?:age)?(?: wise)?|%|relative',
  ],
  [
    'unit',
    'money',
    'in (?:dollars?|usd|money|cash|\\$|dollar terms)|(?:us )?dollars?|usd|money|cash|dollar|bucks',
  ],
  ['unit', 'days', 'in (?:calendar )?days'],
  ['unit', 'months', 'in (?:calendar )?months'],
  ['unit', 'bars', 'in bars|how many bars(?= (?:did|does|was))'],
  [
    'want',
    'count',
    'how many|number of|count(?: of)?|how often|how many times|the number|counts|# of|no of|nr of',
  ],
  [
    'want',
    'share',
    'what (?:percent(?:age)?|share|fraction|proportion|%)(?: of)?|(?:percent(?:age)?|share|fraction|proportion|%) of|how many percent(?: of)?',
  ],
  ['want', 'amount', 'how much|how many (?:us )?(?:dollars|usd|bucks)'],
  ['want', 'degree', 'how (?:big|large|high|low|good|bad|deep|profitable|great|severe|small|well)'],
  [
    'want',
    'length',
    'how long|how many (?:calendar )?days(?= (?:was|is|were|are|did (?:the|a|that|this)|does a))',
  ],
  ['want', 'when', 'when|what dates?|on (?:what|which) (?:day|date)'],
  ['want', 'list', 'list|show|which|display|print|what are|what were'],
  [
    'recovered',
    'yes',
    '(?:has |did |had )?(?:it |the bot |the strategy )?(?:fully )?recover(?:ed|y|s)?(?: from)?|back (?:at|to) (?:its |a )?(?:new )?(?:peak|high)',
  ],
  ...[
    'day',
    'week',
    'month',
    'quarter',
    'year',
    'weekday',
    'hour',
    'reason',
    'symbol',
    'side',
  ].flatMap((unit): (readonly [Slot, string, string])[] => {
    const names = {
      symbol: 'symbol|instrument|asset|market|ticker',
      side: 'side|direction',
      weekday: 'weekday|day of the week',
      hour: 'hour(?: of (?:the )?day)?|time of (?:the )?day',
      reason: '(?:exit )?(?:reason|type)|kind of exit|exit|way (?:they|it) (?:were closed|ended)',
    };
    const name =
      (names as Readonly<Record<string, string>>)[unit] ?? `(?:calendar |trading )?${unit}`;
    return [
      ['per', unit, `(?:per|a|an average|in an average|for an average) (?:${name})`],
      [
        'every',
        unit,
        `(?:by|each|in each|in every|of each|for each|every|for every|grouped by|broken down by|breakdown by|split by|per calendar) (?:${name})`,
      ],
    ];
  }),
  [
    'per',
    'trade',
    '(?:per|for each|for every|of each|of every|in an average|an average) (?:closed )?trade',
  ],
  ['subject', 'trade', '(?:every|each|any|all the) trades?'],
  ['per', 'trade', 'per(?= (?:losing|winning|profitable|short|long) trade)'],
  ['per', 'annum', 'per annum|p a|pa|yearly average'],
  [
    'streak',
    'run',
    '(?:streaks?|(?:run|runs|series|sequence|string) of|in a row|consecutive(?:ly)?|in succession|straight|back to back|one after (?:the other|another))',
  ],
  ['benchmark', 'benchmark', '(?:the |its )?benchmark'],
  [
    'benchmark',
    'hold',
    '(?:just |simply )?(?:the )?(?:buy and hold(?:ing)?|buying and holding|b and h|bnh|hodl|holding)',
  ],
  [
    'compare',
    'vs',
    'vs|versus|compared? (?:to|with|against)|relative to|against|than that of|better than that of|worse than that of|higher than that of|lower than that of|instead of just',
  ],
  ['compare', 'ask', 'compare|comparison|side by side|difference between|compared'],
  [
    'compare',
    'beat',
    '(?:beat|beaten|beats|outperform(?:ed|s)?|underperform(?:ed|s)?|better than|worse than|higher than|lower than|more than|less than|ahead of|better|worse|higher|lower)',
  ],
  ['run', 'two', '(?:the )?(?:last|latest|newest|two|2) (?:2 |two )?(?:runs|backtests)'],
  [
    'reference',
    'one',
    '(?:is|was|does|did) (?:that|this)(?! (?:strategy|bot|system|backtest|run|test|a|an|the))|(?:that|this|the same|said) (?:trade|day|month|year|quarter|week|drawdown|streak|one)|the one',
  ],
  [
    'reference',
    'many',
    'those|these|them|of (?:those|these|them)|(?:those|these|the same) (?:trades|days|months|years|drawdowns|ones)|they|their',
  ],
  ['conjunction', 'and', 'and|or|plus|as well as|,|;|\\?|\\.|!|:|/|\\('],
  ['filler', '', '\\)|"|\'|-'],
  [
    'measure',
    'doing',
    'how (?:did|does|do|was|is|has|were) (?:it|we|this|things|the (?:bot|strategy|system|backtest|run|test)|this (?:bot|strategy))(?: (?:do|perform|go|fare|done|performed|performing|doing))?|how (?:was|did|were)(?= (?:in )?(?:19|20)\\d\\d)',
  ],
  ['filler', '', 'to trade(?: on)?'],
  ['filler', '', 'how (?:do|does|did)(?= (?:the |its )?(?:[a-z]+ ){1,3}compare )'],
  ['filler', '', 'how(?= (?:volatile|exposed|correlated|do the))|how (?:is|was)(?= the)'],
  [
    'filler',
    '',
    '(?:of |in |over |for |during |from )?(?:the )?(?:last|latest|newest|most recent) (?:run|result)s?|(?:in |over |during |for |of )?(?:the )?(?:whole|entire|full|complete|total) (?:period|run|time|history|sample)|over (?:all )?time|all time|so far|to date|hello|hi|hey|it is|in the run',
  ],
  [
    'kind',
    'backtest',
    '(?:of |in |over |for |during |from )?(?:the )?(?:(?:last|latest|newest|most recent|whole|entire|full|complete|total) )?(?:backtests?|tests?|simulations?)|(?:back)?tested',
  ],
  [
    'kind',
    'session',
    '(?:of |in |over |for |during |from )?(?:the |this )?(?:(?:paper|live|running|current|production|trading) )*session',
  ],
  [
    'whatIf',
    'if',
    'what (?:happens |happened )?(?:if|when)|if|would|instead|try|trying|suppose|supposing|assuming|imagine|with|using|use|run it with',
  ],
];

/** Words that never change what is asked. */
export const FILLERS = new Set(
  (
    'a about anything actually again all also am an any are as ask asked at be been being bot bots can could did display do does doing done ' +
    'ever exactly far for from full fully generally get getting give given go going got had has have having here historically history ' +
    'i in into is it its itself just kindly know let me my of ok okay on one only our please pls plz quickly ran really run runs ' +
    's see so specific strategy system thank thanks that the there this to via want was we well were what whats whole entire you your us ' +
    'result algo algorithm ' +
    'value values figure amount happen happened take taken took place tell exist existed exists went single individual complete completely then ' +
    'during over across throughout pay paid pays realized realised me account'
  ).split(' '),
);
