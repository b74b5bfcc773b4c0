// Package eth replays blocks of the Ethereum main chain as ledger transactions:
// transfers of ether and of tokens, with nonces and fees, in their order.
//
// What conflicts here did conflict: exchanges that pay out, contracts that
// everybody calls, senders with several transactions in a block. The built-in
// input is the first 45 blocks, from 2015 to 2022, of those that risechain/pevm
// ships as test data under the MIT licence, see NOTICE.
//
// The rules stand in docs/workloads/eth.md.
package eth
