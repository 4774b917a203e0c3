-- Wireshark dissector for packtrain (EtherType 0x88B5) and for aggregates of the DFAP paper (0xBBBB, 0xAAAA).
--
-- To install: copy this file to ~/.local/lib/wireshark/plugins. docs/wireshark.md says what it shows, and
-- docs/wire-format.md what stands on the wire; names of fields, reasons and options are those of that text.
--
-- How it is made. A capture is read once from its begin to its end, and then again, packet by packet, as the
-- user looks at them. What needs the packets before (sequences, acknowledgements, pieces of frames) is worked
-- out on the first visit of a packet and kept in `state.visits`; later visits only show it, and add what came
-- after: who acknowledged a train, whether a gap was filled. Without a second visit (tshark without -2) that
-- part is not there. Nothing here depends on whether anybody looks at the tree.
--
-- It runs with Lua 5.2 (Wireshark before 4.4) and 5.4: no operators of the latter, no library of the former, but for `xor`.

set_plugin_info({
    version = "1.0",
    description = "packtrain trains (coded ones too), hellos, station and liveness messages; aggregates of the DFAP paper",
})

local ETHER_TYPE = 0x88b5
local AGGREGATE_TYPES = { [0xbbbb] = true, [0xaaaa] = true }
local VERSION = 1
local TYPE = { TRAIN = 1, HELLO = 2, STATION = 3, LIVENESS = 4 }
local KIND = { END = 0, FRAME = 1, FIRST = 2, NEXT = 3, DELTA = 4 }
local CODING = { HEADERS = 1, LZ4 = 2, ZSTANDARD = 3, MIXING = 4 }

-- Bounds of the engine (docs/wire-format.md).
local FAR = 4096 -- a sequence so far from the expected one is no gap
local FAR_IN_A_ROW = 16 -- unless so many come one after the other
local BEHIND = 1024 -- so far behind what a hello names, a recipient goes on from there
local LINKS_MAX = 16
local STATIONS_MAX = 256
local PIECE_END_MAX = 65535
local FORMER_NODE_SECONDS = 4
-- A frame whose next piece does not come for so long is given up: its id may mean another one by then.
local REASSEMBLY_SECONDS = 10
-- Pieces whose FIRST may still come, of one frame id.
local EARLY_PIECES_MAX = 64
-- A line may go over a line (VXLAN, say): messages in frames in messages. No deeper than this.
local DEPTH_MAX = 4
-- A coded train restores to no more, so that a few bytes cannot become many.
local RESTORED_MAX = 65535
-- … and by mixing to this, for that takes long; and what is told of segments is bounded as well.
local MIXED_MAX = 16384
local MIXED_HISTORY_MAX = 20480
-- Bytes of them that are kept, with what they were, at most.
local MEMORY_MAX = 2 ^ 26
-- Frames of a coded train that others of it are told apart from.
local SLOTS = 64
-- As many as our own receivers take.
local LANES_MAX = 5
-- … and as a hello may tell of.
local NEWEST_IN_LANES_MAX = 62

local packtrain = Proto("packtrain", "packtrain")
local dfap = Proto("dfap", "DFAP aggregate")

---------------------------------------------------------------------------------------------------------------
-- Fields

local f = {} -- of packtrain, by the name without "packtrain."
local d = {} -- of dfap

local function add_field(fields, protocol, kind, name, ...)
    local field = ProtoField[kind](protocol .. "." .. name, ...)
    fields[name] = field
end

local function field(kind, name, ...) add_field(f, "packtrain", kind, name, ...) end

-- A field of a bit: its mask within the byte where it stands.
local function flag(name, text, mask) field("bool", name, text, 8, nil, mask) end

local GSO_KINDS = { [1] = "TCP over IPv4", [2] = "TCP over IPv6", [3] = "UDP" }
local TRAIN_OPTIONS = { [0x01] = "ACK", [0x02] = "NEWEST", [0x03] = "DIRECT", [0x04] = "FENCE",
    [0x05] = "BEHIND", [0x06] = "KEPT FROM", [0x07] = "LATE", [0x81] = "SECURITY" }
local HELLO_OPTIONS = { [0x01] = "STATIONS", [0x02] = "SOFTWARE", [0x03] = "COUNT", [0x04] = "DIRECT VLAN",
    [0x05] = "DICTIONARY", [0x06] = "MIXING", [0x07] = "LANES" }
local CODINGS = { "headers", "LZ4", "Zstandard", "mixing" }

field("uint8", "version", "Version", base.DEC, nil, 0xf0)
field("uint8", "type", "Type", base.DEC, { "train", "hello", "station", "liveness" }, 0x0f)
field("uint8", "flags", "Flags", base.HEX)
field("string", "drop_reason", "Refused by a receiver as")
field("bytes", "data", "Data")
field("uint32", "stream", "Conversation")
field("string", "sender", "Sender")
field("string", "receiver", "Receiver")

-- Train
flag("ack_now", "ACK-NOW", 0x01)
flag("marker", "MARKER", 0x02)
flag("replay", "REPLAY", 0x04)
flag("coded", "CODED", 0x08)
flag("repairs", "REPAIRS", 0x10)
flag("lossless", "LOSSLESS", 0x20)
field("uint8", "lane", "Lane")
field("uint8", "link", "Link")
field("uint16", "incarnation", "Incarnation", base.HEX)
field("uint16", "options_length", "Options length")
field("uint32", "train_seq", "Train sequence")
field("uint32", "link_seq", "Link sequence")
field("bool", "probe", "Probe")
field("uint32", "frames", "Whole frames")
field("uint32", "pieces", "Pieces of frames")
field("uint32", "used", "Bytes used")
field("uint16", "link_mtu", "MTU of the link")
field("uint8", "fill", "Fill (%)")
field("uint8", "option.type", "Option", base.HEX, TRAIN_OPTIONS)
field("uint8", "option.length", "Length")
field("bytes", "option.value", "Value")
field("uint8", "ack.link", "Acknowledged link")
field("uint8", "ack.reserved", "Reserved", base.HEX)
field("uint16", "ack.incarnation", "Acknowledged incarnation", base.HEX)
field("uint32", "ack.delay", "Delay (ns)")
field("uint32", "ack.newest", "Newest link sequence received")
field("uint64", "ack.bitmap", "Bitmap", base.HEX)
field("uint32", "ack.named", "Trains named")
field("uint8", "newest.link", "Link")
field("uint24", "newest.distance", "Distance")
field("uint32", "newest.train", "Train")
field("uint32", "direct.sent", "Sent")
field("uint32", "direct.seen_sent", "Seen sent")
field("uint32", "direct.seen_received", "Seen received")
field("uint32", "direct.late", "Late of these")
field("uint8", "fence.link", "Link")
field("uint8", "fence.remote_link", "Remote link")
field("uint16", "fence.reserved", "Reserved", base.HEX)
field("uint32", "fence.from", "From train")
field("uint32", "fence.sent", "Direct frames sent before")
field("uint8", "behind.lane", "Lane")
field("uint24", "behind.reserved", "Reserved", base.HEX)
field("uint32", "behind.from", "From train")
field("uint32", "behind.last", "Behind train of that lane")
field("uint32", "kept_from", "Oldest train of the lane that is kept")
field("uint8", "security.key_id", "Key id")
field("uint64", "security.nonce", "Counter nonce", base.HEX)
field("bytes", "security.tag", "Tag")

-- What a coded train has in place of subframes
field("uint8", "coded.coding", "Coding", base.DEC, CODINGS)
field("uint32", "coded.checksum", "CRC-32 of the subframes as they were", base.HEX)
field("none", "coded.block", "Block")
field("bool", "coded.block.stored", "As it was", 16, nil, 0x8000)
field("uint16", "coded.block.length", "Length", base.DEC, nil, 0x7fff)
field("uint16", "coded.block.plain_length", "Plain length")
field("bytes", "coded.block.data", "Data")
field("uint32", "coded.length", "Coded length")
field("uint32", "coded.restored_length", "Restored length")
field("uint32", "coded.deltas", "Frames told apart from others")

-- Subframe
field("none", "subframe", "Subframe")
field("uint8", "subframe.flags", "Flags", base.HEX, nil, 0xf0)
flag("subframe.has_addresses", "Addresses", 0x80)
flag("subframe.has_ethertype", "EtherType", 0x40)
flag("subframe.has_offload", "Offload", 0x20)
flag("subframe.reserved", "Reserved", 0x10)
field("uint8", "subframe.kind", "Kind", base.DEC, { [0] = "END", "FRAME", "FIRST", "NEXT" }, 0x0f)
field("uint16", "subframe.length", "Length")
field("ether", "subframe.dst", "Destination")
field("ether", "subframe.src", "Source")
field("framenum", "subframe.addresses_from", "Addresses of pt0 told by", base.NONE, frametype.NONE)
field("bool", "subframe.placeholder", "An address of pt0 that no hello told: its link's stands for it")
field("uint16", "subframe.ethertype", "EtherType", base.HEX)
field("uint16", "piece.id", "Frame id")
field("uint16", "piece.total", "Total length")
field("uint16", "piece.offset", "Offset")
field("uint8", "gso.kind", "GSO kind", base.DEC, GSO_KINDS, 0x7f)
flag("gso.cwr", "Congestion window reduced", 0x80)
field("uint8", "gso.checksum_offset", "Checksum offset")
field("uint16", "gso.header_length", "Header length")
field("uint16", "gso.segment_length", "Segment length")
field("uint16", "gso.checksum_start", "Checksum start")
field("uint32", "gso.segments", "Segments")
field("none", "delta", "DELTA")
flag("delta.has_slot", "Slot", 0x80)
flag("delta.has_length", "Length", 0x40)
flag("delta.has_fields", "Fields", 0x20)
flag("delta.rtp", "RTP", 0x10)
flag("delta.new_slot", "A slot of its own", 0x80)
field("uint8", "delta.slot", "Slot", base.DEC, nil, 0x7f)
field("uint32", "delta.length", "Length")
field("uint32", "delta.mask", "Mask", base.HEX)
field("string", "delta.field", "Not as expected")
field("uint32", "delta.reference", "Told apart from subframe")
field("bytes", "payload", "Payload")
field("bytes", "padding", "Padding")
field("none", "fragments", "Pieces")
field("framenum", "fragment", "Piece", base.NONE, frametype.NONE)
field("uint32", "fragment.count", "Number of pieces")
field("uint32", "reassembled.length", "Length of the reassembled payload")
field("bytes", "reassembled.data", "Reassembled payload")
field("framenum", "reassembled_in", "Reassembled in", base.NONE, frametype.NONE)

-- Hello
flag("hello.answer", "ANSWER", 0x01)
flag("hello.goodbye", "GOODBYE", 0x02)
flag("hello.away", "AWAY", 0x04)
flag("hello.full", "FULL", 0x08)
flag("hello.past", "PAST", 0x10)
field("uint8", "hello.link", "Sent by link")
field("uint8", "hello.link_count", "Link count")
field("uint64", "hello.node_id", "Node id", base.HEX)
field("uint64", "hello.recipient", "Recipient's node id", base.HEX)
field("uint32", "line_id", "Line id")
field("uint32", "hello.capabilities", "Capabilities", base.HEX)
field("bool", "hello.marked_frames", "Marked frames", 32, nil, 0x1)
field("bool", "hello.gso_frames", "GSO frames in trains", 32, nil, 0x2)
field("bool", "hello.direct_frames", "Direct frames", 32, nil, 0x4)
field("bool", "hello.coded_trains", "Coded trains", 32, nil, 0x8)
field("bool", "hello.liveness", "Liveness", 32, nil, 0x10)
field("bool", "hello.repair", "Repair", 32, nil, 0x20)
field("bool", "hello.polls", "Polls", 32, nil, 0x40)
field("ether", "hello.address", "Address of pt0")
field("uint16", "hello.mtu", "Largest payload")
field("uint8", "hello.lanes", "Lanes")
field("uint8", "hello.epoch", "Epoch")
field("none", "link_record", "Link record")
field("uint8", "link_record.link", "Link")
field("uint8", "link_record.state", "State", base.HEX)
flag("link_record.carrier", "Carrier", 0x01)
flag("link_record.unused_by_host", "Not used by its host", 0x02)
flag("link_record.takes_vlan", "Takes direct frames in the VLAN", 0x04)
field("uint16", "link_record.mtu", "MTU")
field("ether", "link_record.address", "Address")
field("ether", "link_record.mark", "Mark")
field("ether", "link_record.direct_mark", "Direct mark (follows from the mark)")
field("uint32", "link_record.rate", "Rate (kbit/s)")
field("uint32", "link_record.newest_train", "Newest train sequence")
field("uint32", "link_record.newest_link", "Newest link sequence")
field("uint8", "hello.option.type", "Option", base.HEX, HELLO_OPTIONS)
field("ether", "hello.station", "Station behind pt0")
field("string", "hello.software", "Software", base.UNICODE)
field("uint32", "hello.count", "Hellos made")
field("uint16", "hello.direct_vlan", "VLAN for direct frames")
field("uint32", "hello.dictionary", "Dictionary", base.HEX)
field("uint16", "hello.mixing_ns", "Nanoseconds to restore a byte by mixing", base.DEC)
field("uint32", "hello.newest_in_lane", "Newest train sent in lane", base.DEC)

-- Station
flag("station.goodbye", "GOODBYE", 0x01)
flag("station.answer", "ANSWER", 0x02)
field("uint16", "station.ethertype", "EtherType of aggregates", base.HEX)
field("ether", "station.address", "Address of pt0")
field("uint16", "station.mtu", "MTU")

-- Liveness
local STATES = { [1] = "Down", [2] = "Init", [3] = "Up" }
local DIAGNOSTICS = { [0] = "none", [1] = "detection time expired", [3] = "neighbor signaled session down" }
field("uint8", "liveness.state", "State", base.DEC, STATES, 0xf0)
field("uint8", "liveness.diagnostic", "Diagnostic", base.DEC, DIAGNOSTICS, 0x0f)
field("uint8", "liveness.multiplier", "Multiplier")
field("uint8", "liveness.remote_link", "Remote link")
flag("liveness.asks", "ASKS", 0x01)
flag("liveness.poll", "POLL", 0x02)
field("uint32", "liveness.count", "Count")
field("uint32", "liveness.heard", "Heard")
field("uint32", "liveness.heard_age", "Heard age (us)")
field("uint32", "liveness.desired", "Desired interval (us)")
field("uint32", "liveness.required", "Required interval (us)")
field("uint32", "liveness.heard_long", "Heard long")

-- What other packets tell of this one. All are generated.
field("framenum", "acks_frame", "Acknowledges", base.NONE, frametype.ACK)
field("relative_time", "ack_time", "Time until this acknowledgement")
field("relative_time", "ack_rtt", "Round trip time, without the delay")
field("framenum", "acked_by", "Acknowledged by", base.NONE, frametype.RESPONSE)
field("relative_time", "acked_after", "Acknowledged after")
field("framenum", "replay_of", "Replay of", base.NONE, frametype.RETRANS_PREV)
field("framenum", "duplicate_of", "Duplicate of", base.NONE, frametype.DUP_ACK)
field("framenum", "filled_by", "Came later by", base.NONE, frametype.NONE)
field("uint32", "gap.first", "First missing train")
field("uint32", "gap.count", "Missing trains")
field("uint32", "gap.lost", "Missing trains that never came")
field("uint32", "link_gap.first", "First missing link sequence")
field("uint32", "link_gap.count", "Missing link sequences")
field("uint32", "link_gap.lost", "Missing link sequences that never came")

local function dfap_field(kind, name, ...) add_field(d, "dfap", kind, name, ...) end

dfap_field("uint8", "count", "Packets")
dfap_field("uint16", "offset", "Offset")
dfap_field("none", "packet", "Packet")
dfap_field("uint16", "type", "Type", base.HEX)
dfap_field("uint16", "length", "Length")
dfap_field("bytes", "payload", "Payload")
dfap_field("bytes", "padding", "Padding")
dfap_field("string", "drop_reason", "Refused by a receiver as")

local function values(fields)
    local list = {}
    for _, value in pairs(fields) do list[#list + 1] = value end
    return list
end

packtrain.fields = values(f)
dfap.fields = values(d)

---------------------------------------------------------------------------------------------------------------
-- Expert information. What a receiver refuses has the name of its counter (`packtrain status --json`).

local x, dx = {}, {}

local function expert_of(list, protocol, name, text, group, severity)
    list[name] = ProtoExpert.new(protocol .. "." .. name, text, expert.group[group], expert.severity[severity])
end

local function refusals(list, protocol, group, severity, reasons)
    for name, text in pairs(reasons) do expert_of(list, protocol, name, text, group, severity) end
end

refusals(x, "packtrain", "MALFORMED", "ERROR", {
    unknown_version = "Not a version that is known",
    unknown_type = "Neither train, hello, station nor liveness message",
    truncated = "Shorter than it says",
    bad_option = "An option's length does not fit",
    unknown_critical_option = "A critical option that version 1 does not know",
    bad_subframe = "A subframe that no sender writes",
    subframe_empty = "A subframe without payload",
    nested = "packtrain inside packtrain",
    bad_gso = "Offload metadata that cannot be",
    bad_hello = "A hello or station message that says what cannot be",
    bad_liveness = "A liveness message that says what cannot be",
    reassembly_bad_piece = "A piece that overlaps another, or lies beyond its frame",
    coded_unknown = "A coding that version 1 does not know",
    coded_damaged = "A coded train that does not restore to what it was",
})
refusals(x, "packtrain", "SEQUENCE", "WARN", {
    bad_lane = "A lane that version 1 does not have",
    stale_incarnation = "Of an earlier life of the sender, or for one of the receiver",
    unknown_peer = "The sender has not named this life of the receiver yet",
    sequence_jump = "A train sequence far from the expected one",
})
refusals(x, "packtrain", "REASSEMBLE", "WARN", {
    reassembly_hole = "A piece of the frame is missing",
    stray_piece = "A piece of a frame whose first one is not here",
})

local function analysis(name, text, group, severity)
    expert_of(x, "packtrain", "analysis." .. name, text, group, severity)
end

analysis("gap", "Trains before this one were not seen", "SEQUENCE", "NOTE")
analysis("lost", "Trains before this one never came", "SEQUENCE", "WARN")
analysis("link_gap", "Link sequences before this one were not seen", "SEQUENCE", "NOTE")
analysis("link_lost", "Link sequences before this one never came", "SEQUENCE", "WARN")
analysis("out_of_order", "A train older than the newest", "SEQUENCE", "NOTE")
analysis("link_out_of_order", "A link sequence older than the newest of its link", "SEQUENCE", "NOTE")
analysis("duplicate", "This train was seen before", "SEQUENCE", "NOTE")
analysis("replay", "A train that left before by a link that died or lost it", "SEQUENCE", "NOTE")
analysis("marker_unseen", "A marker names sequences that were not seen", "SEQUENCE", "NOTE")
analysis("restart", "A new life of the sender, or a new row of sequences", "SEQUENCE", "NOTE")
analysis("probe_unanswered", "No acknowledgement names this probe", "SEQUENCE", "NOTE")
analysis("ack_unseen", "Acknowledges a train that was not seen", "SEQUENCE", "NOTE")
analysis("dictionary", "Compressed with a dictionary, which a capture does not have", "UNDECODED", "NOTE")
analysis("mixing", "Coded by mixing, and not restored", "UNDECODED", "NOTE")
analysis("cut_short", "The capture kept only a part of this message", "UNDECODED", "NOTE")

refusals(dx, "dfap", "MALFORMED", "ERROR", {
    truncated = "Shorter than its offsets",
    bad_aggregate = "An offset or a type that no aggregate has",
})
dx["cut_short"] = ProtoExpert.new("dfap.cut_short", "The capture kept only a part of this aggregate",
    expert.group.UNDECODED, expert.severity.NOTE)

packtrain.experts = values(x)
dfap.experts = values(dx)

---------------------------------------------------------------------------------------------------------------
-- Preferences

packtrain.prefs.analysis = Pref.bool("Analyse sequences and acknowledgements", true,
    "Gaps, duplicates, replays, restarts, round trip times")
packtrain.prefs.reassemble = Pref.bool("Reassemble frames that span trains", true, "From their pieces, across trains")
packtrain.prefs.inner = Pref.bool("Dissect the frames inside", true, "Each as an Ethernet frame of its own")
packtrain.prefs.mixing = Pref.bool("Restore trains that are coded by mixing", true,
    "It takes long: some twenty such trains a second")
packtrain.prefs.mtu = Pref.uint("MTU where no hello tells it", 1500, "To say how full a train is; 0: do not say then")
dfap.prefs.bbbb = Pref.bool("EtherType 0xBBBB", true, "The paper's figure")
dfap.prefs.aaaa = Pref.bool("EtherType 0xAAAA", true, "The paper's footnote")
dfap.prefs.inner = Pref.bool("Dissect the packets inside", true, "Each as an Ethernet frame of its own")

---------------------------------------------------------------------------------------------------------------
-- Small things

-- Whether a bit, given as its value, is set.
local function has(value, bit) return math.floor(value / bit) % 2 == 1 end

-- Of two numbers, or of eight. Lua 5.2 has a library for it and no operator; of 5.4 it is the other way round, and the
-- operator must not stand where the former reads it.
local xor = bit32 and bit32.bxor or load([[return function(a, b, c, d, e, f, g, h)
    if not c then return a ~ b end
    return a ~ b ~ c ~ d ~ e ~ f ~ g ~ h
end]])()

-- How far `a` is ahead of `b` (RFC 1982, 32 bits).
local function distance(a, b)
    local ahead = (a - b) % 2 ^ 32
    if ahead >= 2 ^ 31 then ahead = ahead - 2 ^ 32 end
    return math.floor(ahead)
end

local function minus(sequence, n) return math.floor((sequence - n) % 2 ^ 32) end
local function plus(sequence, n) return math.floor((sequence + n) % 2 ^ 32) end

local function raw_of_hex(hex)
    return (hex:gsub("%x%x", function(byte) return string.char(tonumber(byte, 16)) end))
end

local function hex_of_raw(raw)
    return (raw:gsub(".", function(byte) return ("%02x"):format(byte:byte()) end))
end

-- Whether bytes are UTF-8 without control characters, as the name of a software has to be: it is printed.
local function is_plain_text(raw)
    local at = 1
    while at <= #raw do
        local lead = raw:byte(at)
        -- Of a lead byte: bytes that follow, and within what the first of them lies (RFC 3629, section 4).
        local more, low, high = 0, 0x80, 0xbf
        if lead < 0x20 or lead == 0x7f then return false end
        if lead >= 0x80 then
            if lead < 0xc2 or lead > 0xf4 then return false end
            more = lead < 0xe0 and 1 or lead < 0xf0 and 2 or 3
            if lead == 0xc2 or lead == 0xe0 then low = 0xa0 end -- U+0080 … U+009F are controls
            if lead == 0xed then high = 0x9f end
            if lead == 0xf0 then low = 0x90 end
            if lead == 0xf4 then high = 0x8f end
        end
        for i = 1, more do
            local byte = raw:byte(at + i)
            if not byte or byte < low or byte > high then return false end
            low, high = 0x80, 0xbf
        end
        at = at + 1 + more
    end
    return true
end

-- Six raw bytes as people write an address.
local function address_text(raw) return (hex_of_raw(raw):gsub("(%x%x)", "%1:", 5)) end

local function plural(n, what) return ("%d %s%s"):format(n, what, n == 1 and "" or "s") end

local function seconds(value)
    local whole = math.floor(value)
    return NSTime.new(whole, math.floor((value - whole) * 1e9 + 0.5))
end

local function is_group(raw) return raw:byte(1) % 2 == 1 end
-- An address that one station can have.
local function is_own(raw) return not is_group(raw) and raw ~= ("\0"):rep(6) end

-- The mark's second byte tells a direct mark from it (docs/wire-format.md, "Direct frames").
local function direct_mark(mark) return mark:sub(1, 1) .. string.char(xor(mark:byte(2), 0x5a)) .. mark:sub(3) end

-- The EtherType that the first four bits of a payload tell.
local function implied_ether_type(byte)
    local version = math.floor(byte / 16)
    return version == 4 and 0x0800 or version == 6 and 0x86dd or nil
end

-- An address as Wireshark names it. That is what `pinfo` has of the frame that is being dissected, which is the
-- only thing that is always there: the fields of its Ethernet header are not, where nobody looks at the tree.
local function name_of(raw) return tostring(Address.ether(address_text(raw))) end

local eth_source, eth_destination = Field.new("eth.src"), Field.new("eth.dst")

-- The bytes of an address: from the field, of which the innermost one was added last, or from its name, where
-- that is no vendor's. Where there is neither, nobody sees them.
local function bytes_of(address, extract)
    local all = { extract() }
    local last = all[#all]
    if last and last.range:len() == 6 then return last.range:raw() end
    local hex = tostring(address):gsub(":", "")
    return #hex == 12 and not hex:find("%X") and raw_of_hex(hex) or ("\0"):rep(6)
end

-- Whence and where to the frame goes that is being dissected.
local function outer_addresses(pinfo)
    return {
        source = tostring(pinfo.dl_src),
        destination = tostring(pinfo.dl_dst),
        source_bytes = bytes_of(pinfo.dl_src, eth_source),
        destination_bytes = bytes_of(pinfo.dl_dst, eth_destination),
    }
end

local function generated(item)
    item:set_generated()
    return item
end

---------------------------------------------------------------------------------------------------------------
-- What the capture has told so far: who is behind which link's address, and what each has sent to each

local state

local function new_state()
    return {
        visits = {}, -- by message: what its first visit found
        stations = {}, -- by the name of a link's address, mark or direct mark
        nodes = {}, -- by raw node id: the same stations, once a hello has told them
        pt0s = {}, -- by raw address of pt0: whose it is
        directions = {}, -- by the two stations' numbers
        acked = {}, -- by a train's visit: who acknowledged it first
        mixed = { new = {}, old = {}, size = 0 }, -- by what stands in a train: what that was by mixing
        count = 0, -- of stations
        streams = 0,
        depth = 0,
    }
end
state = new_state()

local function init() state = new_state() end

-- Who a station turned out to be.
local function resolved(station)
    while station.merged_into do station = station.merged_into end
    return station
end

local function new_station()
    state.count = state.count + 1
    return { number = state.count, pt0 = {}, links = {}, mtus = {} }
end

-- Whose an address is. Before a hello tells that several links are one node's, each is a station by itself.
local function station_of(address)
    local station = state.stations[address]
    if not station then
        station = new_station()
        station.address = address
        state.stations[address] = station
    end
    return resolved(station)
end

local function station_name(station)
    station = resolved(station)
    if station.node_id then return "node " .. hex_of_raw(station.node_id) end
    return "link " .. station.address
end

-- Numbers that came: the newest, and the visit of each. `first` is where the capture begins to know.
local function new_track() return { seen = {}, far = 0 } end

local function new_row() return { lanes = {}, links = {} } end

local function direction_of(from, to)
    from, to = resolved(from), resolved(to)
    local key = from.number .. ">" .. to.number
    local direction = state.directions[key]
    if not direction then
        local back = state.directions[to.number .. ">" .. from.number]
        direction = { from = from, to = to, rows = {}, stream = back and back.stream or { number = state.streams } }
        if not back then state.streams = state.streams + 1 end
        state.directions[key] = direction
    end
    return direction
end

local function known_direction(from, to)
    return state.directions[resolved(from).number .. ">" .. resolved(to).number]
end

local function merge_tracks(into, other)
    for sequence, visit in pairs(other.seen) do into.seen[sequence] = into.seen[sequence] or visit end
    if not into.newest or other.newest and distance(other.newest, into.newest) > 0 then into.newest = other.newest end
    if not into.first or other.first and distance(other.first, into.first) < 0 then into.first = other.first end
end

local function merge_directions(into, other)
    for incarnation, row in pairs(other.rows) do
        local own = into.rows[incarnation]
        if not own then
            into.rows[incarnation] = row
        else
            for _, part in ipairs({ "lanes", "links" }) do
                for number, track in pairs(row[part]) do
                    if own[part][number] then
                        merge_tracks(own[part][number], track)
                    else
                        own[part][number] = track
                    end
                end
            end
        end
    end
    into.current = into.current or other.current
    if other.stream ~= into.stream then other.stream.merged_into = into.stream end
end

-- A hello tells that an address is a node's: what was kept of it by itself is that node's.
local function merge_stations(into, other)
    if into == other then return end
    other.merged_into = into
    for key, direction in pairs(state.directions) do
        if direction.from == other or direction.to == other then
            state.directions[key] = nil
            direction.from, direction.to = resolved(direction.from), resolved(direction.to)
            local new_key = direction.from.number .. ">" .. direction.to.number
            local own = state.directions[new_key]
            if own then
                merge_directions(own, direction)
            else
                -- The keys of a table that is walked may be cleared, but none may be added.
                into.moved = into.moved or {}
                into.moved[new_key] = into.moved[new_key] or {}
                table.insert(into.moved[new_key], direction)
            end
        end
    end
    for key, directions in pairs(into.moved or {}) do
        for _, direction in ipairs(directions) do
            local own = state.directions[key]
            if own then merge_directions(own, direction) else state.directions[key] = direction end
        end
    end
    into.moved = nil
    local back = {}
    for key, direction in pairs(state.directions) do
        if direction.from == into or direction.to == into then back[key] = direction end
    end
    for _, direction in pairs(back) do
        local other_way = known_direction(direction.to, direction.from)
        if other_way and other_way.stream ~= direction.stream then
            local a, b = direction.stream, other_way.stream
            if a.number < b.number then b.merged_into, other_way.stream = a, a
            else a.merged_into, direction.stream = b, b end
        end
    end
end

local function stream_number(stream)
    local seen = 0
    while stream.merged_into and seen < 1000 do
        stream, seen = stream.merged_into, seen + 1
    end
    return stream.number
end

-- The address of a station's pt0 as of a packet, and the frame that told it. What is told later is better
-- than nothing.
local function pt0_of(station, number)
    local told = resolved(station).pt0
    local best = told[1]
    for _, entry in ipairs(told) do
        if entry.number <= number then best = entry end
    end
    if best then return best.address, best.number end
end

---------------------------------------------------------------------------------------------------------------
-- Sequences

-- Takes a sequence into a track. What of it is worth saying, if anything.
local function take_sequence(track, sequence, visit)
    local before = track.seen[sequence]
    if before then return { kind = "seen", of = before } end
    track.seen[sequence] = visit
    if not track.newest then
        track.newest, track.first = sequence, sequence
        return { kind = "first" }
    end
    local ahead = distance(sequence, track.newest)
    if ahead >= FAR or ahead <= -FAR then
        track.far = track.far + 1
        -- So much was lost, and that is where the sender is.
        if track.far >= FAR_IN_A_ROW then
            track.newest, track.first, track.far = sequence, sequence, 0
        end
        return { kind = "far", ahead = ahead }
    end
    track.far = 0
    if ahead < 0 then return { kind = "behind", behind = -ahead } end
    local missing = { kind = "next" }
    if ahead > 1 then
        missing = { kind = "gap", first = plus(track.newest, 1), count = ahead - 1, track = track }
    end
    track.newest = sequence
    return missing
end

-- The sequences of a gap that have come since, as visits in their order, and how many have not.
local function filled(gap)
    local visits, lost = {}, 0
    for i = 0, gap.count - 1 do
        local visit = gap.track.seen[plus(gap.first, i)]
        if visit then visits[#visits + 1] = visit else lost = lost + 1 end
    end
    return visits, lost
end

-- A hello names the newest sequences: where they are far from what was seen, what follows goes on from there.
local function rebase(track, named)
    if track and track.newest then
        local ahead = distance(named, track.newest)
        if ahead > FAR or ahead < -BEHIND then track.newest, track.first = named, named end
    end
end

local function row_of(direction, incarnation)
    local row = direction.rows[incarnation]
    if not row then
        row = new_row()
        direction.rows[incarnation] = row
    end
    return row
end

local function track_of(tracks, number)
    local track = tracks[number]
    if not track then
        track = new_track()
        tracks[number] = track
    end
    return track
end

local function incarnation_of(node_id, epoch)
    return xor(node_id:byte(7), epoch) * 256 + node_id:byte(8)
end

-- Whether a train's incarnation is the one that counts: nil, or the reason and why.
local function judge_incarnation(direction, incarnation, visit)
    if direction.awaits_naming then
        return "unknown_peer", "no hello has named this life of the receiver yet"
    end
    if direction.expected and incarnation ~= direction.expected then
        return "stale_incarnation", ("0x%04x, and the sender's hellos say 0x%04x"):format(incarnation, direction.expected)
    end
    local node_id = direction.from.node_id
    if node_id and not direction.expected and incarnation % 256 ~= node_id:byte(8) then
        return "stale_incarnation", ("0x%04x is none of %s"):format(incarnation, station_name(direction.from))
    end
    if direction.current and direction.current ~= incarnation then
        if direction.rows[incarnation] then
            return "stale_incarnation", ("0x%04x came before 0x%04x"):format(incarnation, direction.current)
        end
        visit.restart = ("Incarnation 0x%04x after 0x%04x: the sender begins anew"):format(incarnation, direction.current)
    end
    direction.current = incarnation
end

local function analyse_marker(row, train, visit)
    local unseen = {}
    local function compare(track, sequence, what)
        if track and track.newest then
            local ahead = distance(sequence, track.newest)
            if ahead > 0 and ahead < FAR then
                unseen[#unseen + 1] = { what = what, first = plus(track.newest, 1), count = ahead, track = track }
            end
        end
    end
    compare(row.lanes[train.lane], train.train_seq, "train")
    compare(row.links[train.link], train.link_seq, "link sequence")
    if #unseen > 0 then visit.unseen = unseen end
end

-- The first visit of a train, marker or probe.
local function analyse_train(train, visit)
    local direction = direction_of(visit.from, visit.to)
    visit.stream = direction.stream
    local known = direction.rows[train.incarnation] ~= nil
    local reason, why = judge_incarnation(direction, train.incarnation, visit)
    if reason then visit.refused, visit.refused_why = reason, why end
    if not reason and train.lane >= LANES_MAX then
        visit.refused, visit.refused_why = "bad_lane", ("lane %d"):format(train.lane)
    end
    visit.is_new_row = not known
    local row = row_of(direction, train.incarnation)
    visit.row = row
    if train.marker then return analyse_marker(row, train, visit) end
    visit.in_lane = take_sequence(track_of(row.lanes, train.lane), train.train_seq, visit)
    visit.in_link = take_sequence(track_of(row.links, train.link), train.link_seq, visit)
end

-- The first visit of an acknowledgement: whose trains it names.
local function analyse_ack(ack, visit)
    local result = {}
    local direction = known_direction(visit.to, visit.from)
    if not direction then return result end
    local row = direction.rows[ack.incarnation]
    if not row then
        if direction.current then
            result.stale = ("0x%04x, and that node's trains have 0x%04x"):format(ack.incarnation, direction.current)
        end
        return result
    end
    if direction.current and direction.current ~= ack.incarnation then
        result.stale = ("0x%04x, and that node's trains have 0x%04x by now"):format(ack.incarnation, direction.current)
    end
    local track = row.links[ack.link]
    if not track then return result end
    local newest = track.seen[ack.newest]
    if newest then
        result.acks = newest
        result.time = visit.time - newest.time
        result.rtt = result.time - ack.delay / 1e9
    elseif track.first and distance(ack.newest, track.first) >= 0 and distance(ack.newest, track.first) < 2 ^ 30 then
        -- What was sent before the capture began is nothing to speak of.
        result.unseen = ack.newest
    end
    local function names(sequence)
        local train = track.seen[sequence]
        if train and not train.acked then train.acked = { by = visit, time = visit.time - train.time } end
    end
    names(ack.newest)
    for i = 0, 63 do
        if ack.bits[i] then names(minus(ack.newest, 1 + i)) end
    end
    return result
end

---------------------------------------------------------------------------------------------------------------
-- Pieces of frames. They are in order by train sequence and place in the train, not by arrival: by several
-- links, and as replays, they come as they like.

local function is_before(a, b)
    local apart = distance(a.sequence, b.sequence)
    return apart < 0 or apart == 0 and a.place < b.place
end

local function frames_of(row, lane)
    local track = track_of(row.lanes, lane)
    track.frames = track.frames or {}
    return track.frames
end

-- Gives a piece to its frame, because of the one that has just come: itself, or the FIRST that it waited for.
local function put_piece(frame, piece, arrival)
    local stop = piece.offset + piece.length
    if stop > frame.total then
        frame.bad, piece.bad = true, true
        return
    end
    for _, other in ipairs(frame.pieces) do
        if piece.offset < other.offset + other.length and other.offset < stop then
            frame.bad, piece.bad = true, true
            return
        end
    end
    piece.follows = piece.offset == 0
    for _, other in ipairs(frame.pieces) do
        if other.offset + other.length == piece.offset then piece.follows = true end
    end
    piece.frame = frame
    table.insert(frame.pieces, piece)
    frame.bytes = frame.bytes + piece.length
    frame.touched = piece.visit.time
    if frame.bytes < frame.total or frame.bad then return end
    table.sort(frame.pieces, function(a, b) return a.offset < b.offset end)
    local parts = {}
    for _, part in ipairs(frame.pieces) do
        parts[#parts + 1] = part.bytes
        part.bytes = nil
    end
    frame.payload = table.concat(parts)
    frame.done = arrival
end

local function take_first(frames, piece, frame)
    local list = frames[piece.id]
    if not list then
        list = { early = {} }
        frames[piece.id] = list
    end
    frame.pieces, frame.bytes, frame.begins = {}, 0, piece
    local at = #list + 1
    while at > 1 and is_before(piece, list[at - 1].begins) do at = at - 1 end
    local following = list[at] and list[at].begins
    table.insert(list, at, frame)
    put_piece(frame, piece, piece)
    local still_early = {}
    for _, early in ipairs(list.early) do
        local is_of_it = is_before(piece, early) and not (following and is_before(following, early))
        if is_of_it and piece.visit.time - early.visit.time < REASSEMBLY_SECONDS then
            put_piece(frame, early, piece)
        else
            still_early[#still_early + 1] = early
        end
    end
    list.early = still_early
    -- What nobody can add to any more.
    while #list > 8 do table.remove(list, 1) end
end

local function take_next(frames, piece)
    local list = frames[piece.id]
    if not list then
        list = { early = {} }
        frames[piece.id] = list
    end
    for at = #list, 1, -1 do
        local frame = list[at]
        if is_before(frame.begins, piece) then
            local is_over = frame.done or frame.bad or piece.visit.time - frame.touched > REASSEMBLY_SECONDS
            if not is_over then return put_piece(frame, piece, piece) end
            break
        end
    end
    table.insert(list.early, piece)
    if #list.early > EARLY_PIECES_MAX then table.remove(list.early, 1) end
end

-- The bytes of a frame's payload that have not come: from, to (exclusive).
local function holes(frame)
    local sorted = {}
    for _, piece in ipairs(frame.pieces) do sorted[#sorted + 1] = piece end
    table.sort(sorted, function(a, b) return a.offset < b.offset end)
    local list, at = {}, 0
    for _, piece in ipairs(sorted) do
        if piece.offset > at then list[#list + 1] = { at, piece.offset } end
        at = piece.offset + piece.length
    end
    if at < frame.total then list[#list + 1] = { at, frame.total } end
    return list
end

---------------------------------------------------------------------------------------------------------------
-- Showing

-- Says that a receiver refuses a message, or what is left of it, by the name of the counter.
local function refuse(tree, range, reason, why)
    local item = range and tree:add(f["drop_reason"], range, reason) or tree:add(f["drop_reason"], reason)
    generated(item):add_proto_expert_info(x[reason], why and (reason .. ": " .. why) or reason)
end

-- The Ethernet dissector, for frames without FCS.
local ethernet = Dissector.get("eth_withoutfcs")

-- A frame inside, as if it had come by itself: beside the message, not below its subframe, for some dissectors
-- (UDP's is one) put what they carry there whatever is above them. What it does to the columns and to the packet's addresses is
-- undone by `keep_columns`. An inner dissector that fails has said so in the tree; the next frame is another.
local function dissect_frame(tvb, pinfo, tree)
    if state.depth >= DEPTH_MAX then return end
    state.depth = state.depth + 1
    pcall(function() ethernet:call(tvb, pinfo, tree) end)
    state.depth = state.depth - 1
end

local function keep_columns(pinfo)
    return { src = pinfo.src, dst = pinfo.dst, net_src = pinfo.net_src, net_dst = pinfo.net_dst,
        dl_src = pinfo.dl_src, dl_dst = pinfo.dl_dst }
end

local function restore_columns(pinfo, kept, protocol, info)
    for name, value in pairs(kept) do pinfo[name] = value end
    pinfo.cols.protocol:clear_fence()
    pinfo.cols.protocol:set(protocol)
    pinfo.cols.info:clear_fence()
    pinfo.cols.info:set(info)
end

local function is_cut_short(tvb) return tvb:len() < tvb:reported_len() end

local function show_bits(tree, range, names)
    for _, name in ipairs(names) do tree:add(f[name], range) end
end

-- Walks options: type, length, value. Calls `each(type, at, length)`; an error's reason and where it is.
local function walk_options(tvb, at, stop, each)
    while at < stop do
        if at + 2 > stop then return "bad_option", at, stop - at end
        local kind, length = tvb(at, 1):uint(), tvb(at + 1, 1):uint()
        if at + 2 + length > stop then return "bad_option", at, stop - at end
        local reason = each(kind, at + 2, length)
        if reason then return reason, at, 2 + length end
        at = at + 2 + length
    end
end

---------------------------------------------------------------------------------------------------------------
-- Train: reading

local OPTION_LENGTH = { [0x01] = 20, [0x03] = 12, [0x04] = 12, [0x05] = 12, [0x06] = 4, [0x07] = 4 }

local function read_ack(tvb, at)
    local ack = {
        at = at,
        link = tvb(at, 1):uint(),
        incarnation = tvb(at + 2, 2):uint(),
        delay = tvb(at + 4, 4):uint(),
        newest = tvb(at + 8, 4):uint(),
        bits = {},
        named = 1,
    }
    local high, low = tvb(at + 12, 4):uint(), tvb(at + 16, 4):uint()
    for i = 0, 63 do
        local is_set = i < 32 and has(low, 2 ^ i) or i >= 32 and has(high, 2 ^ (i - 32))
        if is_set then
            ack.bits[i] = true
            ack.named = ack.named + 1
        end
    end
    return ack
end

-- The header and the options; `refused` and `refused_at` where a receiver drops the whole.
local function read_train(tvb)
    local train = { acks = {}, options = {} }
    if tvb:len() < 16 then
        train.refused, train.refused_at = "truncated", { 0, tvb:len() }
        return train
    end
    local flags = tvb(1, 1):uint()
    train.has_header = true
    train.ack_now, train.marker, train.replay = has(flags, 1), has(flags, 2), has(flags, 4)
    -- A marker has no subframes that could be coded.
    train.coded = has(flags, 8) and not train.marker
    train.lane, train.link = tvb(2, 1):uint(), tvb(3, 1):uint()
    train.incarnation = tvb(4, 2):uint()
    train.train_seq, train.link_seq = tvb(8, 4):uint(), tvb(12, 4):uint()
    train.options_length = tvb(6, 2):uint()
    train.subframes_at = 16 + train.options_length
    if train.subframes_at > tvb:len() then
        train.refused, train.refused_at = "truncated", { 6, 2 }
        return train
    end
    local reason, at, length = walk_options(tvb, 16, train.subframes_at, function(kind, at, length)
        local fits = length == (OPTION_LENGTH[kind] or length) and (kind ~= 0x02 or length % 4 == 0)
        if not fits then return "bad_option" end
        table.insert(train.options, { kind = kind, at = at, length = length })
        if kind == 0x01 then table.insert(train.acks, read_ack(tvb, at)) end
        if kind >= 0x80 then return "unknown_critical_option" end
    end)
    if reason then train.refused, train.refused_at = reason, { at, length } end
    return train
end

local function read_offload(tvb, at)
    return {
        at = at,
        kind = tvb(at, 1):uint() % 128,
        header_length = tvb(at + 2, 2):uint(),
        segment_length = tvb(at + 4, 2):uint(),
    }
end

-- One subframe, in the order in which a receiver looks at it. nil at the end; or what is known of it, with
-- `refused` and `why` where it cannot be.
local function read_subframe(tvb, at)
    local left = tvb:len() - at
    if left <= 0 then return nil end
    local first = tvb(at, 1):uint()
    local sub = { at = at, flags = first - first % 16, kind = first % 16, stop = tvb:len() }
    local function refused(reason, why)
        sub.refused, sub.why = reason, why
        return sub
    end
    if sub.kind == KIND.END then return nil end
    if sub.kind > KIND.NEXT then return refused("bad_subframe", ("kind %d is not known"):format(sub.kind)) end
    if has(first, 0x10) then return refused("bad_subframe", "a reserved flag is set") end
    local position = at + 3
    local function part(length)
        if position + length > tvb:len() then return nil end
        position = position + length
        return position - length
    end
    if left < 3 then return refused("truncated", "a subframe's header is longer than what is left") end
    sub.length = tvb(at + 1, 2):uint()
    if sub.length == 0 then return refused("subframe_empty") end
    local function cut() return refused("truncated", "a subframe is longer than what is left") end
    if sub.kind == KIND.NEXT then
        if sub.flags ~= 0 then return refused("bad_subframe", "a later piece with fields of a first one") end
        sub.piece_at = part(4)
        if not sub.piece_at then return cut() end
        sub.id, sub.offset = tvb(sub.piece_at, 2):uint(), tvb(sub.piece_at + 2, 2):uint()
        if sub.offset + sub.length > PIECE_END_MAX then
            return refused("bad_subframe", "a piece beyond 65,535 bytes")
        end
    else
        if has(first, 0x80) then
            sub.addresses_at = part(12)
            if not sub.addresses_at then return cut() end
            sub.dst, sub.src = tvb:raw(sub.addresses_at, 6), tvb:raw(sub.addresses_at + 6, 6)
        end
        if has(first, 0x40) then
            sub.type_at = part(2)
            if not sub.type_at then return cut() end
            sub.ether_type = tvb(sub.type_at, 2):uint()
        end
        if has(first, 0x20) then
            local offload_at = part(8)
            if not offload_at then return cut() end
            sub.gso = read_offload(tvb, offload_at)
            if not GSO_KINDS[sub.gso.kind] then
                return refused("bad_gso", ("GSO kind %d is not known"):format(sub.gso.kind))
            end
        end
        if sub.kind == KIND.FIRST then
            sub.piece_at = part(4)
            if not sub.piece_at then return cut() end
            sub.id, sub.total, sub.offset = tvb(sub.piece_at, 2):uint(), tvb(sub.piece_at + 2, 2):uint(), 0
        end
    end
    sub.payload_at = part(sub.length)
    if not sub.payload_at then return cut() end
    sub.stop = position
    if sub.kind ~= KIND.NEXT then
        if sub.ether_type == ETHER_TYPE then return refused("nested") end
        sub.ether_type = sub.ether_type or implied_ether_type(tvb(sub.payload_at, 1):uint())
        if not sub.ether_type then
            return refused("bad_subframe", "neither IPv4 nor IPv6, and no EtherType")
        end
        if sub.kind == KIND.FIRST and sub.total <= sub.length then
            return refused("bad_subframe", "a first piece that is the whole")
        end
        if sub.gso and sub.gso.header_length > 14 + sub.length then
            sub.bad_gso = "the headers are longer than " .. (sub.kind == KIND.FIRST and "the first piece" or "the frame")
        elseif sub.gso and sub.gso.segment_length == 0 then
            sub.bad_gso = "segments of no bytes"
        end
    end
    return sub
end

-- All of them, where the last one ends, and which one, if any, a receiver stops at.
local function read_subframes(region)
    local list, at = {}, region.at
    while true do
        local sub = read_subframe(region.tvb, at)
        if not sub then return list, at end
        sub.place = #list + 1
        list[sub.place] = sub
        if sub.refused then return list, at, sub end
        at = sub.stop
    end
end

---------------------------------------------------------------------------------------------------------------
-- Coded trains (docs/wire-format.md, "Coded trains"): from what stands in the train to its subframes as they were.
-- It works on strings, and says what is wrong by `damaged`, which `restore_coded` catches. All of it is slow and
-- plain; bounded by RESTORED_MAX, the worst train takes some ten milliseconds, but by mixing a third of a second.

local restore_coded

do
    local unpack = table.unpack

    -- Leaves the decoder: this train does not restore.
    local function damaged(what, text, ...) error({ why = what .. ": " .. text:format(...) }, 0) end

    -- CRC-32 of IEEE 802.3: reflected, begun with ones, inverted in the end. `crc_of[k][byte]` is what is left of a
    -- byte with k zero bytes behind it, so that eight are taken at once.
    local crc_of = { [0] = {} }
    for value = 0, 255 do
        local crc = value
        for _ = 1, 8 do
            local bit = crc % 2
            crc = (crc - bit) / 2
            if bit == 1 then crc = xor(crc, 0xedb88320) end
        end
        crc_of[0][value] = crc
    end
    for k = 1, 7 do
        crc_of[k] = {}
        for value = 0, 255 do
            local crc = crc_of[k - 1][value]
            local low = crc % 256
            crc_of[k][value] = xor(crc_of[0][low], (crc - low) / 256)
        end
    end

    local function crc32(bytes)
        local c0, c1, c2, c3 = crc_of[0], crc_of[1], crc_of[2], crc_of[3]
        local c4, c5, c6, c7 = crc_of[4], crc_of[5], crc_of[6], crc_of[7]
        local crc = 0xffffffff
        local eights = #bytes - #bytes % 8
        for at = 1, eights, 8 do
            local b1, b2, b3, b4, b5, b6, b7, b8 = bytes:byte(at, at + 7)
            local word = xor(crc, b1 + 0x100 * b2 + 0x10000 * b3 + 0x1000000 * b4)
            b1 = word % 256
            word = (word - b1) / 256
            b2 = word % 256
            word = (word - b2) / 256
            b3 = word % 256
            b4 = (word - b3) / 256
            crc = xor(c7[b1], c6[b2], c5[b3], c4[b4], c3[b5], c2[b6], c1[b7], c0[b8])
        end
        for at = eights + 1, #bytes do
            local low = crc % 256
            crc = xor(c0[xor(low, bytes:byte(at))], (crc - low) / 256)
        end
        return xor(crc, 0xffffffff)
    end

    -- Bytes that are taken one after the other: `bytes`, `at` (of the next one, from 1), and `what` they are of.

    local function take(from, length)
        local taken = from.bytes:sub(from.at, from.at + length - 1)
        if #taken < length then damaged(from.what, "%s is longer than what is left", from.part) end
        from.at = from.at + length
        return taken
    end

    local function take_byte(from) return take(from, 1):byte() end

    -- Seven bits a byte, the lowest first.
    local function take_number(from)
        local number, scale = 0, 1
        for _ = 1, 5 do
            local byte = take_byte(from)
            number = number + byte % 128 * scale
            if number >= 2 ^ 32 then break end
            if byte < 128 then return number end
            scale = scale * 128
        end
        damaged(from.what, "a number of more than 32 bits")
    end

    -- Big-endian, of up to four bytes; `at` counts from 0, as everywhere below.
    local function number_at(bytes, at, width)
        local number = 0
        for i = at + 1, at + width do number = number * 256 + bytes:byte(i) end
        return number
    end

    -------------------------------------------------------------------------------------------------------------
    -- Blocks, and LZ4's block format in them: sequences of a token, literals, and a match that is copied from what was
    -- restored before, by this block or those before it; the last sequence has literals only.

    -- What is restored is a list of bytes, for matches reach to any of them.
    local function append(out, bytes)
        local length = #out
        for from = 1, #bytes, 256 do
            local part = { bytes:byte(from, from + 255) }
            for i = 1, #part do out[length + i] = part[i] end
            length = length + #part
        end
    end

    local function text_of(out)
        local parts = {}
        for from = 1, #out, 1024 do
            parts[#parts + 1] = string.char(unpack(out, from, math.min(from + 1023, #out)))
        end
        return table.concat(parts)
    end

    -- Four bits of the token; 15 of them go on in bytes, until one is not 255.
    local function lz4_length(from, nibble)
        local length = nibble
        if nibble == 15 then
            repeat
                local more = take_byte(from)
                length = length + more
            until more ~= 255
        end
        return length
    end

    -- Puts a block behind what is there. `stop`: what there may be then, at most.
    local function restore_lz4(from, out, stop)
        while true do
            local token = take_byte(from)
            local literals = lz4_length(from, math.floor(token / 16))
            if #out + literals > stop then damaged(from.what, "it restores to more than it says") end
            append(out, take(from, literals))
            if from.at > #from.bytes then return end
            local low, high = take(from, 2):byte(1, 2)
            local offset = low + 256 * high
            local length = lz4_length(from, token % 16) + 4
            local there = #out
            if offset == 0 or offset > there then
                damaged(from.what, "a match %d bytes back, where %d are there", offset, there)
            end
            if there + length > stop then damaged(from.what, "it restores to more than it says") end
            -- It may reach into what it restores itself.
            for i = there + 1, there + length do out[i] = out[i - offset] end
        end
    end

    -------------------------------------------------------------------------------------------------------------
    -- Mixing: context mixing with an arithmetic coder. Each bit of a block takes some hundred steps, so what is done
    -- for each is written out with locals, and what can be is looked up. Numbers of 32 bits are Lua's own, which are
    -- exact to 53; a shift to the right is a floor: (n - n % 2 ^ k) / 2 ^ k.

    local begin_mixing, restore_mixed

    do
        -- A counter is one number: its chance, and 4096 times how many bits it has seen. What it says, and what it is
        -- after a bit, are looked up by it.
        local NEW_COUNTER = 2048
        local SEEN_MAX = 12
        local WEIGHT_MAX = 2 ^ 20
        -- Built when the first such train comes, for most captures have none.
        local SAYS, AFTER_0, AFTER_1
        local CHANCE -- of 2048 and more: what a mixer makes of a sum
        local STRETCH, BELOW
        local LAWS -- by a segment's kind
        local PLACES -- by context, and by the upper bits of a hash

        local function filled(first, last, value)
            local list = {}
            for i = first, last do list[i] = value end
            return list
        end

        local function numbers(text)
            local list, at = {}, 0
            for number in text:gmatch("%d+") do list[at], at = tonumber(number), at + 1 end
            return list
        end

        local function between(value, least, most) return math.max(least, math.min(value, most)) end

        -- As `/` of the document: towards zero.
        local function cut(value) return value < 0 and -math.floor(-value) or math.floor(value) end

        ---------------------------------------------------------------------------------------------------------
        -- Tables

        local function prepare_chances()
            local knots = numbers([[1 2 4 6 10 17 27 45 74 120 194 311 488 747 1102 1546 2048 2550 2994 3349 3608 3785 3902
                3976 4022 4051 4069 4079 4086 4090 4092 4094 4095]])
            CHANCE, STRETCH = {}, {}
            local next_chance = 0
            for y = 1, 4095 do
                local b = y % 128
                local k = (y - b) / 128
                local chance = math.floor((knots[k] * (128 - b) + knots[k + 1] * b + 64) / 128)
                CHANCE[y] = between(chance, 1, 4094)
                while next_chance <= chance do STRETCH[next_chance], next_chance = y - 2048, next_chance + 1 end
            end
            for chance = next_chance, 4095 do STRETCH[chance] = 2047 end
        end

        local function prepare_counters()
            SAYS, AFTER_0, AFTER_1 = {}, {}, {}
            for seen = 0, SEEN_MAX do
                local rate = math.floor(65536 / (seen + 1.5))
                local first, then_first = 4096 * seen, 4096 * math.min(seen + 1, SEEN_MAX)
                for chance = 1, 4095 do
                    local at = first + chance
                    SAYS[at] = seen > 0 and STRETCH[chance] or 0
                    local down, up = -chance * rate, (4095 - chance) * rate
                    down, up = chance + (down - down % 65536) / 65536, chance + (up - up % 65536) / 65536
                    AFTER_0[at] = then_first + (down < 1 and 1 or down)
                    AFTER_1[at] = then_first + (up > 4094 and 4094 or up)
                end
                SAYS[first + 4096], AFTER_0[first + 4096], AFTER_1[first + 4096] = 0, 0, 0 -- nobody's: lists have no holes
            end
        end

        -- Of a logistic distribution, what is below so many 256ths: from 0 on, the other half is its mirror.
        local function prepare_below()
            local steps = numbers([[32768 36843 40793 44511 47911 50941 53581 55834 57724 59287 60565 61598 62428 63090
                63615 64030 64357 64614 64816 64974 65097 65194 65269 65328 65374 65410 65438 65459 65476 65489 65500
                65508 65514 65519 65523 65526 65528 65530 65531 65532 65533 65534 65534 65535 65536]])
            BELOW = {}
            for at = 0, 2816 do
                local b = at % 64
                local k = (at - b) / 64
                BELOW[at] = math.floor((steps[k] * (64 - b) + (steps[k + 1] or steps[k]) * b + 32) / 64)
            end
        end

        -- G.711, table 2b, twice.
        local function mu_law(code)
            local inverted = 255 - code
            local segment, step = math.floor(inverted / 16) % 8, inverted % 16
            local value = ((2 * step + 33) * 2 ^ segment - 33) * 2
            return code >= 128 and value or -value
        end

        -- Table 1b, four times.
        local function a_law(code)
            local even = xor(code, 0x55)
            local segment, step = math.floor(even / 16) % 8, even % 16
            local value = segment == 0 and 2 * step + 1 or (2 * step + 33) * 2 ^ (segment - 1)
            return code >= 128 and 4 * value or -4 * value
        end

        -- Codes and values by rank, and sixteen times the edges: what lies between a rank and the one before it.
        local function law_of(value_of)
            local law = { codes = {}, values = {}, edges = { [0] = -16 * 2 ^ 20, [256] = 16 * 2 ^ 20 } }
            local codes = {}
            for code = 0, 255 do codes[code + 1] = code end
            table.sort(codes, function(a, b)
                local first, second = value_of(a), value_of(b)
                -- µ-law has two zeros: that of the lower code is negative.
                if first == second then return a < b end
                return first < second
            end)
            for rank = 0, 255 do
                law.codes[rank] = codes[rank + 1]
                law.values[rank] = value_of(codes[rank + 1])
                if rank > 0 then law.edges[rank] = 16 * math.floor((law.values[rank - 1] + law.values[rank]) / 2) end
            end
            return law
        end

        -- A place has counters 1 … 15, and whose it is.
        local TAG = 16
        local function prepare_places()
            local n = NEW_COUNTER
            PLACES = {}
            for context = 1, 6 do
                local places = {}
                for i = 0, 4095 do places[i] = { n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, 0 } end
                PLACES[context] = places
            end
        end

        ---------------------------------------------------------------------------------------------------------
        -- Hashes

        -- Of two numbers below 2^32, to 32 bits: a half of one after the other, for the whole has 64.
        local function product(a, b)
            local low = a % 0x10000
            return (low * b + (a - low) / 0x10000 * b % 0x10000 * 0x10000) % 0x100000000
        end

        -- hash(a, b) is finished_hash(begun_hash(a) + b): the first half is the same for all that follows.
        local function begun_hash(a) return product(xor(a, 0x9e3779b9), 0x2c1b3c6d) end

        local function finished_hash(sum)
            sum = sum % 0x100000000
            local low = sum % 0x10000
            local m = (low * 0x297a2d39 + (sum - low) / 0x10000 * 0x297a2d39 % 0x10000 * 0x10000) % 0x100000000
            m = xor(m, (m - m % 0x8000) / 0x8000)
            low = m % 0x10000
            m = (low * 0x85ebca6b + (m - low) / 0x10000 * 0x85ebca6b % 0x10000 * 0x10000) % 0x100000000
            return xor(m, (m - m % 0x2000) / 0x2000)
        end

        -- What a context is begun with.
        local BEGUN = {}
        for context = 1, 6 do BEGUN[context] = begun_hash(context) end

        -- The place of a hash in a context's table. Tags are of a train: those below `first_tag` are nobody's, and nothing
        -- needs to be cleared between trains.
        local function place_of(places, sum, first_tag)
            local hash = finished_hash(sum)
            local low = hash % 0x100000
            local at = (hash - low) / 0x100000
            low = low % 0x10000
            local tag = first_tag + (low % 2 == 0 and low + 1 or low)
            local one = places[at]
            if one[TAG] == tag then return one end
            local other = places[at % 2 == 0 and at + 1 or at - 1]
            if other[TAG] == tag then return other end
            if one[TAG] >= first_tag then
                -- Of both, the one that has seen less; how much is in the multiples of 4096.
                local seen = one[1] - one[1] % 4096
                if other[TAG] < first_tag or other[1] - other[1] % 4096 < seen then one = other end
            end
            for node = 1, 15 do one[node] = NEW_COUNTER end
            one[TAG] = tag
            return one
        end

        ---------------------------------------------------------------------------------------------------------
        -- What both ends learn of a train

        -- Told, headers, body: of each, where it began in the segment before, and how long it was.
        local function new_part(number)
            local weights = {}
            for set = 0, 3 do weights[set] = filled(1, 9, 18000) end
            return { begin = 0, length = 0, alone = filled(1, 255, NEW_COUNTER), weights = weights,
                begun = begun_hash(finished_hash(BEGUN[6] + number)) }
        end

        local trains = 0

        -- The state at the begin of a train. There is one at a time, for the places are those of all.
        function begin_mixing()
            if not SAYS then
                prepare_chances()
                prepare_counters()
                prepare_below()
                prepare_places()
                LAWS = { law_of(mu_law), law_of(a_law) }
            end
            trains = trains + 1
            return {
                first_tag = trains * 0x10000,
                -- All that was coded, from 1; before it are zeros.
                history = filled(-5, 0, 0),
                length = 0,
                buckets = filled(0, 4095, 0),
                -- Which byte of the history is expected next, and how many before it were the same.
                match_at = 0,
                match_length = 0,
                matched = filled(1, 31, NEW_COUNTER),
                above = filled(0, 7, NEW_COUNTER),
                told = new_part(0),
                headers = new_part(1),
                body = new_part(2),
                error_of_all = 256,
                samples_seen = {},
                samples_weights = {},
            }
        end

        -- A byte comes into the history.
        local function push(train, byte)
            local history, length = train.history, train.length + 1
            history[length], train.length = byte, length
            local same = train.match_length
            if same > 0 and history[train.match_at] == byte then
                train.match_at = train.match_at + 1
                if same < 31 then train.match_length = same + 1 end
            else
                same, train.match_length = 0, 0
            end
            if length < 4 then return end
            local word = byte + 0x100 * history[length - 1] + 0x10000 * history[length - 2]
                + 0x1000000 * history[length - 3]
            local hash = product(word, 0x9e3779b1)
            local bucket = (hash - hash % 0x100000) / 0x100000
            local before = train.buckets[bucket]
            train.buckets[bucket] = length
            if same > 0 or before == 0 then return end
            while same < 31 and same < before and history[before - same] == history[length - same] do same = same + 1 end
            if same >= 4 then train.match_at, train.match_length = before + 1, same end
        end

        ---------------------------------------------------------------------------------------------------------
        -- Bits

        -- Behind the block's end there are zeros: three, for what was decided then had been written.
        local function next_code_byte(bits)
            local at = bits.at
            bits.at = at + 1
            if at > #bits.bytes + 3 then damaged(bits.what, "it ends before it has restored what it says") end
            return bits.bytes:byte(at) or 0
        end

        local function begin_bits(bytes, what)
            local bits = { bytes = bytes, at = 1, what = what, low = 0, high = 0xffffffff, word = 0 }
            for _ = 1, 4 do bits.word = bits.word * 256 + next_code_byte(bits) end
            return bits
        end

        -- Whether the next bit is a 1, which has that chance.
        local function take_bit(bits, chance)
            local low, high, word = bits.low, bits.high, bits.word
            local range = high - low
            local rest = range % 4096
            local share = rest * chance
            local middle = low + (range - rest) / 4096 * chance + (share - share % 4096) / 4096
            local is_one = word <= middle
            if is_one then high = middle else low = middle + 1 end
            -- Only what is so close can have the same highest byte.
            while high - low < 0x1000000 do
                local top = low - low % 0x1000000
                if high - high % 0x1000000 ~= top then break end
                low, high = (low - top) * 256, (high - top) * 256 + 255
                word = (word - top) * 256 + next_code_byte(bits)
            end
            bits.low, bits.high, bits.word = low, high, word
            return is_one
        end

        ---------------------------------------------------------------------------------------------------------
        -- Bytes

        -- The contexts' hashes, begun; behind them comes what is known of the byte.
        local function contexts_of(train, part, column, above)
            local history, length = train.history, train.length
            local p1, p2, p3 = history[length], history[length - 1], history[length - 2]
            local two = p1 + 0x100 * p2
            local three = two + 0x10000 * p3
            local four = finished_hash(BEGUN[4] + three + 0x1000000 * history[length - 3])
            four = finished_hash(begun_hash(four) + history[length - 4] + 0x100 * history[length - 5])
            -- How far the last byte was from what stood above it.
            local by_above = above and 0x100 * above + (p1 - history[part.begin + column]) % 256 or 0x10000
            return begun_hash(finished_hash(BEGUN[1] + p1)), begun_hash(finished_hash(BEGUN[2] + two)),
                begun_hash(finished_hash(BEGUN[3] + three)), begun_hash(four),
                begun_hash(finished_hash(BEGUN[5] + by_above)), begun_hash(finished_hash(part.begun + column))
        end

        -- Whether within a byte a weight could go beyond its bounds: by a bit it goes 6140 at most.
        local function is_near_bound(weights)
            for i = 1, #weights do
                local weight = weights[i]
                if weight > WEIGHT_MAX - 50000 or weight < 50000 - WEIGHT_MAX then return true end
            end
            return false
        end

        local function bounded(weight, ...)
            if not weight then return end
            return between(weight, -WEIGHT_MAX, WEIGHT_MAX), bounded(...)
        end

        -- A match's length becomes one of four sets of weights.
        local function set_of(length) return length == 0 and 0 or length < 8 and 1 or length < 20 and 2 or 3 end

        -- The next byte of a part. Of nine inputs each has its counter (k), what that says (i), and its weight (w). Here a
        -- product with 1 / 65536 stands for a quotient, which takes longer.
        local function restore_byte(train, bits, part)
            local column = train.length - train.part_at
            local above = column < part.length and train.history[part.begin + column + 1] or nil
            local h1, h2, h3, h4, h5, h6 = contexts_of(train, part, column, above)
            local match_length = train.match_length
            local match = match_length > 0 and train.history[train.match_at] or nil
            local k8 = train.matched[match_length]
            local alone, aboves, first_tag = part.alone, train.above, train.first_tag
            local weights = part.weights[set_of(match_length)]
            local w1, w2, w3, w4, w5, w6, w7, w8, w9 = unpack(weights)
            local is_near = is_near_bound(weights)
            local known = 1
            for first = 0, 4, 4 do
                local p1, p2 = place_of(PLACES[1], h1 + known, first_tag), place_of(PLACES[2], h2 + known, first_tag)
                local p3, p4 = place_of(PLACES[3], h3 + known, first_tag), place_of(PLACES[4], h4 + known, first_tag)
                local p5, p6 = place_of(PLACES[5], h5 + known, first_tag), place_of(PLACES[6], h6 + known, first_tag)
                local node = 1
                for bit_at = first, first + 3 do
                    local k1, k2, k3, k4, k5, k6 = p1[node], p2[node], p3[node], p4[node], p5[node], p6[node]
                    local k7, k9 = alone[known], aboves[bit_at]
                    local i1, i2, i3, i4, i5 = SAYS[k1], SAYS[k2], SAYS[k3], SAYS[k4], SAYS[k5]
                    local i6, i7, i8, i9 = SAYS[k6], SAYS[k7], 0, 0
                    -- `match` and `above` have the bit that comes next as the highest, as long as they were right.
                    if match then i8 = match >= 128 and SAYS[k8] or -SAYS[k8] end
                    if above then i9 = above >= 128 and SAYS[k9] or -SAYS[k9] end
                    local sum = w1 * i1 + w2 * i2 + w3 * i3 + w4 * i4 + w5 * i5 + w6 * i6 + w7 * i7 + w8 * i8 + w9 * i9
                    sum = (sum - sum % 65536) * (1 / 65536)
                    if sum > 2047 then sum = 2047 elseif sum < -2047 then sum = -2047 end
                    local chance = CHANCE[sum + 2048]

                    local is_one = take_bit(bits, chance)
                    local after, off
                    if is_one then
                        after, off = AFTER_1, 48 * (4096 - chance)
                        known, node = 2 * known + 1, 2 * node + 1
                    else
                        after, off = AFTER_0, -48 * chance
                        known, node = 2 * known, 2 * node
                    end

                    i1, i2, i3 = i1 * off + 32768, i2 * off + 32768, i3 * off + 32768
                    i4, i5, i6 = i4 * off + 32768, i5 * off + 32768, i6 * off + 32768
                    i7, i8, i9 = i7 * off + 32768, i8 * off + 32768, i9 * off + 32768
                    w1, w2 = w1 + (i1 - i1 % 65536) * (1 / 65536), w2 + (i2 - i2 % 65536) * (1 / 65536)
                    w3, w4 = w3 + (i3 - i3 % 65536) * (1 / 65536), w4 + (i4 - i4 % 65536) * (1 / 65536)
                    w5, w6 = w5 + (i5 - i5 % 65536) * (1 / 65536), w6 + (i6 - i6 % 65536) * (1 / 65536)
                    w7, w8 = w7 + (i7 - i7 % 65536) * (1 / 65536), w8 + (i8 - i8 % 65536) * (1 / 65536)
                    w9 = w9 + (i9 - i9 % 65536) * (1 / 65536)
                    if is_near then w1, w2, w3, w4, w5, w6, w7, w8, w9 = bounded(w1, w2, w3, w4, w5, w6, w7, w8, w9) end

                    local was = is_one and (node - 1) * 0.5 or node * 0.5
                    p1[was], p2[was], p3[was], p4[was] = after[k1], after[k2], after[k3], after[k4]
                    p5[was], p6[was] = after[k5], after[k6]
                    alone[is_one and (known - 1) * 0.5 or known * 0.5] = after[k7]
                    if match then
                        local is_right = (match >= 128) == is_one
                        k8 = is_right and AFTER_1[k8] or AFTER_0[k8]
                        match = is_right and match % 128 * 2 or nil
                    end
                    if above then
                        local is_right = (above >= 128) == is_one
                        aboves[bit_at] = is_right and AFTER_1[k9] or AFTER_0[k9]
                        above = is_right and above % 128 * 2 or nil
                    end
                end
            end
            weights[1], weights[2], weights[3], weights[4], weights[5] = w1, w2, w3, w4, w5
            weights[6], weights[7], weights[8], weights[9] = w6, w7, w8, w9
            if match_length > 0 then train.matched[match_length] = k8 end
            return known - 256
        end

        ---------------------------------------------------------------------------------------------------------
        -- Samples of G.711: each by the two before it

        -- How a body begins.
        local function new_samples(train, law)
            return { law = law, s1 = 0, s2 = 0, of_11 = 1024, of_22 = 1024, of_12 = 614, of_1 = 614, of_2 = 307,
                count = 0, error = train.error_of_all }
        end

        -- The next sample, in sixteenths: by least squares.
        local function expected_sample(samples)
            local most, scale = math.max(samples.of_11, samples.of_22), 1
            while most >= 0x400000 * scale do scale = scale * 2 end
            local a, b = math.floor(samples.of_11 / scale) + 4, math.floor(samples.of_22 / scale) + 4
            local c, p, q = math.floor(samples.of_12 / scale), math.floor(samples.of_1 / scale),
                math.floor(samples.of_2 / scale)
            local determinant = math.max(math.floor((a * b - c * c) / 4096), 1)
            local w1 = between(cut((p * b - q * c) / determinant), -8192, 8192)
            local w2 = between(cut((q * a - p * c) / determinant), -8192, 8192)
            return math.floor((w1 * samples.s1 + w2 * samples.s2 + 128) / 256)
        end

        -- A sum forgets a 128th, and takes a product.
        local function added(sum, product_of_two) return sum + product_of_two - math.floor(sum / 128) end

        local function learn_sample(train, samples, value, expected)
            local off, s1, s2 = math.abs(16 * value - expected), samples.s1, samples.s2
            samples.count = math.min(samples.count + 1, 13)
            samples.error = samples.error + cut((off - samples.error) / math.max(samples.count, 2))
            train.error_of_all = train.error_of_all + cut((off - train.error_of_all) / 64)
            samples.of_11, samples.of_22 = added(samples.of_11, s1 * s1), added(samples.of_22, s2 * s2)
            samples.of_12 = added(samples.of_12, s1 * s2)
            samples.of_1, samples.of_2 = added(samples.of_1, value * s1), added(samples.of_2, value * s2)
            samples.s1, samples.s2 = value, s1
        end

        -- How much is below an edge, of a distribution of that width around what is expected.
        local function share_below(off, width)
            local at = off * 256 / width
            if at >= 2816 then return 65536 elseif at <= -2816 then return 0 end
            if at >= 0 then return BELOW[at - at % 1] end
            return 65536 - BELOW[-at - -at % 1]
        end

        -- What such a distribution says of the next bit, by what is below both ends and the middle.
        local function says_share(from, middle, to)
            local chance = 4096 * (to - middle + 1) / (to - from + 2)
            if chance < 1 then chance = 1 elseif chance > 4095 then chance = 4095 end
            return STRETCH[chance - chance % 1]
        end

        -- The weights of errors of so many bits, and the counters of those and of samples that were the same, or not.
        local function of_size(train, size, is_same)
            local at = is_same and 2 * size + 1 or 2 * size
            local weights, seen = train.samples_weights[size], train.samples_seen[at]
            if not weights then
                weights = { 26000, 16000, 14000, 6000 }
                train.samples_weights[size] = weights
            end
            if not seen then
                seen = filled(1, 255, NEW_COUNTER)
                train.samples_seen[at] = seen
            end
            return weights, seen
        end

        local function size_of(err)
            local size, bound = 0, 1
            while size < 15 and err >= bound do size, bound = size + 1, bound * 2 end
            return size
        end

        -- The next sample: its rank is found by halves. Three inputs are distributions, which say by what is below the
        -- ends and the middle of what is left (f, m, t); the fourth is a counter.
        local function restore_sample(train, bits, samples)
            local law, expected = samples.law, expected_sample(samples)
            local edges = law.edges
            local weights, seen = of_size(train, size_of(samples.error), samples.s1 == samples.s2)
            local err = math.max(samples.error, 8)
            local width1, width2, width3 = math.floor(err * 10 / 16), math.floor(err * 5 / 16) + 2, math.floor(err * 24 / 16)
            local w1, w2, w3, w4 = unpack(weights)
            local is_near = is_near_bound(weights)
            local f1, f2, f3, t1, t2, t3 = 0, 0, 0, 65536, 65536, 65536
            local from, half, known = 0, 128, 1
            while half >= 1 do
                local off_edge = edges[from + half] - expected
                local m1, m2, m3 = share_below(off_edge, width1), share_below(off_edge, width2), share_below(off_edge, width3)
                local i1, i2, i3 = says_share(f1, m1, t1), says_share(f2, m2, t2), says_share(f3, m3, t3)
                local counter = seen[known]
                local i4 = SAYS[counter]
                local sum = math.floor((w1 * i1 + w2 * i2 + w3 * i3 + w4 * i4) / 65536)
                if sum > 2047 then sum = 2047 elseif sum < -2047 then sum = -2047 end
                local chance = CHANCE[sum + 2048]

                local off
                if take_bit(bits, chance) then
                    seen[known], known, off = AFTER_1[counter], 2 * known + 1, 8 * (4096 - chance)
                    from, f1, f2, f3 = from + half, m1, m2, m3
                else
                    seen[known], known, off = AFTER_0[counter], 2 * known, -8 * chance
                    t1, t2, t3 = m1, m2, m3
                end
                i1, i2, i3, i4 = i1 * off + 32768, i2 * off + 32768, i3 * off + 32768, i4 * off + 32768
                w1, w2 = w1 + (i1 - i1 % 65536) / 65536, w2 + (i2 - i2 % 65536) / 65536
                w3, w4 = w3 + (i3 - i3 % 65536) / 65536, w4 + (i4 - i4 % 65536) / 65536
                if is_near then w1, w2, w3, w4 = bounded(w1, w2, w3, w4) end
                half = half / 2
            end
            weights[1], weights[2], weights[3], weights[4] = w1, w2, w3, w4
            learn_sample(train, samples, law.values[from], expected)
            return law.codes[from]
        end

        ---------------------------------------------------------------------------------------------------------
        -- Blocks

        -- So many bytes of a part, behind what is there. `samples`: what they are, if they are samples.
        local function restore_part(train, bits, part, out, count, samples)
            train.part_at = train.length
            local length = #out
            for i = length + 1, length + count do
                local byte = samples and restore_sample(train, bits, samples) or restore_byte(train, bits, part)
                out[i] = byte
                push(train, byte)
            end
            part.begin, part.length = train.part_at, count
        end

        -- The next segment; `left`: bytes that it may have.
        local function restore_segment(train, bits, out, left)
            local told = {}
            restore_part(train, bits, train.told, told, 4)
            local kind, headers, body = told[1], told[2], 256 * told[3] + told[4]
            local count = headers + body
            if kind > #LAWS then damaged(bits.what, "a segment of kind %d", kind) end
            if count == 0 then damaged(bits.what, "a segment of no bytes") end
            if count > left then damaged(bits.what, "a segment of %d bytes, where %d are left", count, left) end
            if train.length + count > MIXED_HISTORY_MAX then
                damaged(bits.what, "more than 20,480 bytes of the train, what is told of segments counted")
            end
            restore_part(train, bits, train.headers, out, headers)
            restore_part(train, bits, train.body, out, body, kind > 0 and new_samples(train, LAWS[kind]))
        end

        -- Puts a block behind what is there, until there is as much as it says.
        function restore_mixed(train, block, out, stop)
            local bits = begin_bits(block.bytes, block.what)
            while #out < stop do restore_segment(train, bits, out, stop - #out) end
            if bits.at ~= #block.bytes + 4 then
                damaged(block.what, "it goes on when it has restored the %s that it says", plural(block.plain_length, "byte"))
            end
        end
    end

    -------------------------------------------------------------------------------------------------------------
    -- Blocks of any coding

    -- The next block's place and lengths; nil at the end.
    local function read_block(from, number)
        local bytes, at = from.bytes, from.at
        if at > #bytes or at == #bytes and bytes:byte(at) == 0 then return nil end
        local block = { number = number, at = at - 1, what = ("block %d"):format(number) }
        from.what, from.part = block.what, "its header"
        local first = number_at(take(from, 2), 0, 2)
        block.length, block.is_stored = first % 0x8000, first >= 0x8000
        if block.length == 0 then
            from.at = at
            return nil
        end
        block.plain_length = block.is_stored and block.length or number_at(take(from, 2), 0, 2)
        from.part = "it"
        block.data_at = from.at - 1
        block.bytes = take(from, block.length)
        return block
    end

    -- What is not restored, and why, as an expert information is named.
    local function unread_reason(coding)
        if coding.kind == CODING.ZSTANDARD then return "dictionary" end
        return coding.kind == CODING.MIXING and not packtrain.prefs.mixing and "mixing" or nil
    end

    -- What the blocks restore to, one behind the other; nil where they are not read.
    local function restore_blocks(from, coding)
        local out, total, number = {}, 0, 1
        local unread = unread_reason(coding)
        local is_mixed = coding.kind == CODING.MIXING
        local mixing = is_mixed and not unread and begin_mixing()
        local most = is_mixed and MIXED_MAX or RESTORED_MAX
        while true do
            local block = read_block(from, number)
            if not block then break end
            coding.blocks[number] = block
            number = number + 1
            total = total + block.plain_length
            if total > most then
                damaged(block.what, "the train restores to more than %d,%03d bytes", math.floor(most / 1000), most % 1000)
            end
            if block.is_stored then
                append(out, block.bytes)
            elseif unread then
                coding.unread = unread
            elseif mixing then
                restore_mixed(mixing, block, out, total)
            else
                restore_lz4({ bytes = block.bytes, at = 1, what = block.what, part = "a sequence" }, out, total)
            end
            block.bytes = nil
            if not coding.unread and #out ~= total then
                damaged(block.what, "it restores to less than the %s that it says", plural(block.plain_length, "byte"))
            end
        end
        return not coding.unread and text_of(out) or nil
    end

    -- The same, and of trains by mixing only once: a packet is looked at twice, and whenever the list is filtered. When
    -- there is as much as MEMORY_MAX, what was not asked for since there was half of it is forgotten.
    local function recall_blocks(from, coding)
        if coding.kind ~= CODING.MIXING or unread_reason(coding) then return restore_blocks(from, coding) end
        local mixed = state.mixed
        local key = from.bytes
        local known = mixed.new[key] or mixed.old[key]
        if not known then
            local text = restore_blocks(from, coding)
            if not text then return nil end
            known = { text = text, blocks = coding.blocks, at = from.at }
        end
        if not mixed.new[key] then
            if mixed.size > MEMORY_MAX / 2 then mixed.old, mixed.new, mixed.size = mixed.new, {}, 0 end
            mixed.new[key], mixed.size = known, mixed.size + #key + #known.text
        end
        coding.blocks, from.at = known.blocks, known.at
        return known.text
    end

    -------------------------------------------------------------------------------------------------------------
    -- The headers of a frame, and their fields, in the order of the document's list

    local SAME, LENGTH = "same", "length"
    local HEADER_SUM, TRANSPORT_SUM = "header checksum", "transport checksum"

    -- Name, header, where in it, width, what is expected, and whether its distance from that is told (ᵈ).
    local function row(name, base_of, at, width, expected, is_distance)
        return { name = name, base = base_of, at = at, width = width, expected = expected, is_distance = is_distance }
    end

    local IDENTIFICATION = { row("IPv4 identification", "ip", 4, 2, "identification", true) }
    local TIMES = {
        row("TCP time", "transport", 24, 4, SAME, true),
        row("TCP time echo", "transport", 28, 4, SAME, true),
    }
    local TCP = {
        row("TCP acknowledgement", "transport", 8, 4, SAME, true),
        row("TCP sequence", "transport", 4, 4, "TCP sequence", true),
        row("TCP window", "transport", 14, 2, SAME, true),
        row("TCP flags", "transport", 13, 1, SAME),
        row("TCP source port", "transport", 0, 2, SAME, true),
        row("TCP destination port", "transport", 2, 2, SAME, true),
        row("TCP checksum", "transport", 16, 2, TRANSPORT_SUM),
        row("TCP urgent pointer", "transport", 18, 2, SAME),
    }
    local RTP_COUNTERS = {
        row("RTP time", "rtp", 4, 4, "RTP time", true),
        row("RTP sequence", "rtp", 2, 2, "one more", true),
    }
    local UDP_PORTS = {
        row("UDP source port", "transport", 0, 2, SAME, true),
        row("UDP destination port", "transport", 2, 2, SAME, true),
    }
    local RTP_REST = {
        row("RTP source", "rtp", 8, 4, SAME),
        row("RTP first two bytes", "rtp", 0, 2, SAME),
    }
    local UDP_REST = {
        row("UDP checksum", "transport", 6, 2, TRANSPORT_SUM),
        row("UDP length", "transport", 4, 2, LENGTH, true),
    }
    local IPV4 = {
        row("IPv4 source", "ip", 12, 4, SAME),
        row("IPv4 destination", "ip", 16, 4, SAME),
        row("IPv4 total length", "ip", 2, 2, LENGTH, true),
        row("IPv4 time to live", "ip", 8, 1, SAME),
        row("IPv4 type of service", "ip", 1, 1, SAME),
        row("IPv4 flags and fragment offset", "ip", 6, 2, SAME),
        row("IPv4 header checksum", "ip", 10, 2, HEADER_SUM),
    }
    local IPV6 = {
        row("IPv6 source", "ip", 8, 16, SAME),
        row("IPv6 destination", "ip", 24, 16, SAME),
        row("IPv6 payload length", "ip", 4, 2, LENGTH, true),
        row("IPv6 hop limit", "ip", 7, 1, SAME),
        row("IPv6 first four bytes", "ip", 0, 4, SAME),
    }

    local function joined(...)
        local list = {}
        for _, part in ipairs({ ... }) do
            for _, field_row in ipairs(part) do list[#list + 1] = field_row end
        end
        return list
    end

    -- One list for each kind of headers, so that two frames have the same headers only if they have the same list.
    local FIELDS = { [4] = {}, [6] = {} }
    for version, parts in pairs({ [4] = { IDENTIFICATION, IPV4 }, [6] = { {}, IPV6 } }) do
        FIELDS[version].none = joined(parts[1], parts[2])
        FIELDS[version].tcp = joined(parts[1], TCP, parts[2])
        FIELDS[version].timed_tcp = joined(parts[1], TIMES, TCP, parts[2])
        FIELDS[version].udp = joined(parts[1], UDP_PORTS, UDP_REST, parts[2])
        FIELDS[version].rtp = joined(parts[1], RTP_COUNTERS, UDP_PORTS, RTP_REST, UDP_REST, parts[2])
    end

    local VLAN_TAGS = { [0x8100] = true, [0x88a8] = true }
    local NO_HEADERS = { fields = {}, stop = 0 }

    -- Adds UDP's or TCP's header, where it is there in full and the packet is no fragment; what is above IP.
    local function add_transport(headers, payload, is_rtp)
        local at = headers.stop
        if headers.version == 4 and number_at(payload, headers.ip + 6, 2) % 0x4000 ~= 0 then return "none" end
        local protocol = payload:byte(headers.ip + (headers.version == 4 and 9 or 6) + 1)
        local length
        if protocol == 17 then
            length = 8
        elseif protocol == 6 and #payload >= at + 20 then
            length = math.floor(payload:byte(at + 13) / 16) * 4
            if length < 20 then return "none" end
        end
        if not length or #payload < at + length then return "none" end
        headers.transport, headers.stop, headers.is_tcp = at, at + length, protocol == 6
        if headers.is_tcp then
            local is_timed = length >= 32 and payload:sub(at + 21, at + 24) == "\1\1\8\10"
            return is_timed and "timed_tcp" or "tcp"
        end
        if not is_rtp or #payload < headers.stop + 12 then return "udp" end
        headers.rtp, headers.stop = headers.stop, headers.stop + 12
        return "rtp"
    end

    -- Where they stand in a payload, which is what follows the EtherType. `is_rtp`: what is behind UDP is RTP, if there is
    -- room for it.
    local function headers_of(ether_type, payload, is_rtp)
        local at = 0
        for _ = 1, 2 do
            if VLAN_TAGS[ether_type] and #payload >= at + 4 then
                ether_type = number_at(payload, at + 2, 2)
                at = at + 4
            end
        end
        if #payload <= at then return NO_HEADERS end
        local first = payload:byte(at + 1)
        local version, length = math.floor(first / 16), 0
        if ether_type == 0x0800 and version == 4 then length = first % 16 * 4 end
        if ether_type == 0x86dd and version == 6 then length = 40 end
        if length < 20 or #payload < at + length then return NO_HEADERS end
        local headers = { version = version, ip = at, stop = at + length }
        headers.above = add_transport(headers, payload, is_rtp)
        headers.fields = FIELDS[version][headers.above]
        return headers
    end

    -- Where a packet ends by its IP length: not before the headers do, nor behind the frame.
    local function packet_stop(payload, headers)
        local told
        if headers.version == 4 then
            told = headers.ip + number_at(payload, headers.ip + 2, 2)
        else
            told = headers.ip + 40 + number_at(payload, headers.ip + 4, 2)
        end
        return math.min(math.max(told, headers.stop), #payload)
    end

    -- Of a frame of `length` bytes, by what the reference has.
    local EXPECTED = {
        [SAME] = function(before) return before end,
        ["one more"] = function(before) return before + 1 end,
        ["identification"] = function(before) return before == 0 and 0 or before + 1 end,
        [LENGTH] = function(before, payload, _, length) return before + length - #payload end,
        ["TCP sequence"] = function(before, payload, headers)
            return before + packet_stop(payload, headers) - headers.stop
        end,
        ["RTP time"] = function(before, payload, headers) return before + #payload - headers.stop end,
    }

    -- Of 16-bit numbers in ones' complement, inverted.
    local function checksum(bytes)
        local sum = 0
        for at = 1, #bytes - 1, 2 do
            local high, low = bytes:byte(at, at + 1)
            sum = sum + 256 * high + low
        end
        if #bytes % 2 == 1 then sum = sum + 256 * bytes:byte(#bytes) end
        while sum > 0xffff do sum = sum % 0x10000 + math.floor(sum / 0x10000) end
        return 0xffff - sum
    end

    -- The right ones, of a payload in which they are 0.
    local SUMS = {
        [HEADER_SUM] = function(payload, headers)
            return checksum(payload:sub(headers.ip + 1, headers.transport or headers.stop))
        end,
        [TRANSPORT_SUM] = function(payload, headers)
            local addresses_at, addresses_length = headers.ip + 12, 8
            if headers.version == 6 then addresses_at, addresses_length = headers.ip + 8, 32 end
            local segment = payload:sub(headers.transport + 1, packet_stop(payload, headers))
            local pseudo = payload:sub(addresses_at + 1, addresses_at + addresses_length)
                .. string.char(0, headers.is_tcp and 6 or 17, math.floor(#segment / 256), #segment % 256)
            local sum = checksum(pseudo .. segment)
            -- Of UDP 0 says that there is none.
            return sum == 0 and not headers.is_tcp and 0xffff or sum
        end,
    }

    -------------------------------------------------------------------------------------------------------------
    -- DELTA: a frame told apart from an earlier one

    -- By the field's number in the list, what stands of it.
    local function take_told(from, fields, delta)
        local told, at = {}, from.at - 1
        local mask = take_number(from)
        delta.mask = { at = at, length = from.at - 1 - at, value = mask }
        if mask >= 2 ^ #fields then damaged(from.what, "a mask of fields that its headers do not have") end
        for i, field_row in ipairs(fields) do
            if has(mask, 2 ^ (i - 1)) then
                local value = { at = from.at - 1, row = field_row }
                if field_row.is_distance then
                    local number = take_number(from)
                    local half = math.floor(number / 2)
                    value.distance = number % 2 == 0 and half or -half - 1
                else
                    value.bytes = take(from, field_row.width)
                end
                value.length = from.at - 1 - value.at
                told[i] = value
            end
        end
        return told
    end

    local function store(list, at, width, value)
        for i = at + width, at + 1, -1 do
            local low = value % 256
            list[i] = low
            value = (value - low) / 256
        end
    end

    -- The frame's payload: the reference's headers but for what was told and what is expected to be another.
    local function put_together(reference, headers, told, behind)
        local header, length = { reference:byte(1, headers.stop) }, headers.stop + #behind
        local sums = {}
        for i, field_row in ipairs(headers.fields) do
            local at, width, value = headers[field_row.base] + field_row.at, field_row.width, told[i]
            if value and value.bytes then
                for n = 1, width do header[at + n] = value.bytes:byte(n) end
            elseif SUMS[field_row.expected] then
                local has_none = field_row.expected == TRANSPORT_SUM and not headers.is_tcp
                    and number_at(reference, at, 2) == 0
                store(header, at, 2, 0)
                if not has_none then sums[at] = SUMS[field_row.expected] end
            elseif value or field_row.expected ~= SAME then
                local expected = EXPECTED[field_row.expected](number_at(reference, at, width), reference, headers, length)
                store(header, at, width, (expected + (value and value.distance or 0)) % 2 ^ (8 * width))
            end
        end
        -- These are over what all others say; none is over another one.
        local payload = string.char(unpack(header)) .. behind
        for at, sum in pairs(sums) do store(header, at, 2, sum(payload, headers)) end
        return string.char(unpack(header)) .. behind
    end

    local function restore_delta(from, slots)
        local delta = { at = from.at - 1 }
        local first = take_byte(from)
        delta.slot, delta.is_new = slots.newest, false
        if has(first, 0x80) then
            delta.slot_at = from.at - 1
            local byte = take_byte(from)
            delta.slot, delta.is_new = byte % 128, byte >= 128
        end
        local reference = slots[delta.slot]
        if not reference then
            damaged(from.what, delta.slot and "no frame is in slot %d" or "no frame is before it", delta.slot)
        end
        delta.reference = reference.place
        local length = #reference.payload
        if has(first, 0x40) then
            local at = from.at - 1
            length = take_number(from)
            delta.told_length = { at = at, length = from.at - 1 - at, value = length }
        end
        local is_rtp = has(first, 0x10)
        local headers = headers_of(reference.ether_type, reference.payload, is_rtp)
        if is_rtp and not headers.rtp then damaged(from.what, "RTP, where its reference has no room for it") end
        if length == 0 or length > RESTORED_MAX or length < headers.stop then
            damaged(from.what, "a payload of %d bytes, with headers of %d", length, headers.stop)
        end
        delta.fields = #headers.fields
        delta.told = has(first, 0x20) and take_told(from, headers.fields, delta) or {}
        local behind = take(from, length - headers.stop)
        delta.length = from.at - 1 - delta.at
        local payload = put_together(reference.payload, headers, delta.told, behind)
        local found = headers_of(reference.ether_type, payload, is_rtp)
        if found.fields ~= headers.fields or found.stop ~= headers.stop then
            damaged(from.what, "it has other headers than its reference")
        end
        return delta, { first = reference.first, fields = reference.fields, ether_type = reference.ether_type,
            payload = payload }
    end

    -- A frame gets the next slot, or takes one.
    local function put(slots, slot, frame)
        if not slot then
            slot = slots.next
            slots.next = (slot + 1) % SLOTS
        end
        slots[slot], slots.newest = frame, slot
    end

    -- One of the subframes that trains have as well, as it stands; a whole frame gets a slot.
    local function restore_plain(from, content, slots, place)
        local at = content.at + from.at - 1
        local sub = read_subframe(content.tvb, at)
        if sub.refused then damaged(from.what, "%s%s", sub.refused, sub.why and " (" .. sub.why .. ")" or "") end
        local bytes = take(from, sub.stop - at)
        if sub.kind == KIND.FRAME and not sub.gso then
            put(slots, nil, { first = bytes:sub(1, 1), fields = bytes:sub(4, sub.payload_at - at),
                ether_type = sub.ether_type, payload = bytes:sub(sub.payload_at - at + 1), place = place })
        end
        return bytes
    end

    -- Coded subframes, which stand in `content` (a Tvb, and from where on), to subframes as they were.
    local function restore_subframes(content, bytes, coding)
        local from, slots, parts, length = { bytes = bytes, at = 1, part = "it" }, { next = 0 }, {}, 0
        while from.at <= #bytes do
            local kind = bytes:byte(from.at) % 16
            if kind == KIND.END then break end
            local place = #parts + 1
            from.what = ("subframe %d"):format(place)
            if kind == KIND.DELTA then
                local delta, frame = restore_delta(from, slots)
                frame.place = place
                put(slots, not delta.is_new and delta.slot or nil, frame)
                coding.deltas[place] = delta
                coding.delta_count = coding.delta_count + 1
                local size = #frame.payload
                local header = frame.first .. string.char(math.floor(size / 256), size % 256) .. frame.fields
                parts[place] = header .. frame.payload
            else
                parts[place] = restore_plain(from, content, slots, place)
            end
            length = length + #parts[place]
            if length > RESTORED_MAX then damaged(from.what, "the train restores to more than 65,535 bytes") end
        end
        return table.concat(parts), from.at - 1
    end

    -- A Tvb of no bytes cannot be made; an empty one is behind the last byte of another.
    local function as_region(bytes, name, tvb)
        if bytes == "" then return { tvb = tvb, at = tvb:len() } end
        return { tvb = ByteArray.new(bytes, true):tvb(name), at = 0 }
    end

    local function decode(tvb, coding)
        local content_at = coding.at + 5
        if content_at > tvb:len() then damaged("the train", "it is shorter than coding and checksum") end
        coding.kind, coding.checksum = tvb(coding.at, 1):uint(), tvb(coding.at + 1, 4):uint()
        if not CODINGS[coding.kind] then
            coding.reason = "coded_unknown"
            damaged("the train", "coding %d", coding.kind)
        end
        local bytes = content_at < tvb:len() and tvb:raw(content_at) or ""
        local content, used = { tvb = tvb, at = content_at }, nil
        if coding.kind ~= CODING.HEADERS then
            local from = { bytes = bytes, at = 1 }
            bytes = recall_blocks(from, coding)
            used = from.at - 1
            coding.stop = content_at + used
            if not bytes then return end
            content = as_region(bytes, "Coded subframes", tvb)
        end
        coding.content = content
        local restored, subframes_used = restore_subframes(content, bytes, coding)
        coding.stop = content_at + (used or subframes_used)
        local sum = crc32(restored)
        if sum ~= coding.checksum then
            damaged("the checksum", "0x%08x, and what the train restores to has 0x%08x", coding.checksum, sum)
        end
        coding.restored_length = #restored
        coding.region = as_region(restored, "Restored subframes", tvb)
        coding.region.is_restored = true
    end

    -- What stands at `at` in a train: how it is coded, as far as that can be read, and `region`, the subframes as they
    -- were; or the reason why a receiver drops it, and why; or that it is not read.
    function restore_coded(tvb, at)
        local coding = { at = at, blocks = {}, deltas = {}, delta_count = 0 }
        local is_done, mistake = pcall(decode, tvb, coding)
        if is_done then return coding end
        -- A mistake of this file's own is Wireshark's to tell.
        if type(mistake) ~= "table" then error(mistake, 0) end
        coding.refused, coding.why = coding.reason or "coded_damaged", mistake.why
        return coding
    end
end

-- The subframes of a train as plain bytes: in which Tvb they stand, and from where on. Of a coded train that is one of
-- its own, if it could be restored; all that follows works on the result.
local function plain_region(tvb, train)
    if not train.coded then return { tvb = tvb, at = train.subframes_at } end
    train.coding = restore_coded(tvb, train.subframes_at)
    return train.coding.region
end

---------------------------------------------------------------------------------------------------------------
-- Train: first visit

local function take_pieces(train, region, subframes, visit)
    local frames = frames_of(visit.row, train.lane)
    for _, sub in ipairs(subframes) do
        if not sub.refused and sub.kind ~= KIND.FRAME then
            local piece = {
                id = sub.id,
                sequence = train.train_seq,
                place = sub.place,
                offset = sub.offset,
                length = sub.length,
                bytes = region.tvb:raw(sub.payload_at, sub.length),
                visit = visit,
            }
            visit.pieces[sub.place] = piece
            if sub.kind == KIND.FIRST then
                take_first(frames, piece, {
                    total = sub.total,
                    dst = sub.dst,
                    src = sub.src,
                    ether_type = sub.ether_type,
                    gso = sub.gso,
                    bad = sub.bad_gso ~= nil,
                })
            else
                take_next(frames, piece)
            end
        end
    end
end

-- What the first visit of a message found, and whether this is it.
local function visit_of(tvb, pinfo)
    -- A packet may hold several messages, a line over a line; each begins with numbers of its own.
    local key = pinfo.number .. ":" .. tvb:raw(0, math.min(tvb:len(), 16))
    local visit = state.visits[key]
    if visit then return visit, false end
    visit = { number = pinfo.number, time = pinfo.rel_ts, pieces = {}, acks = {} }
    state.visits[key] = visit
    return visit, true
end

local function first_visit_of_train(train, region, subframes, visit)
    if train.refused then return end
    visit.is_probe = not train.marker and not train.coded and #subframes == 0
    analyse_train(train, visit)
    for i, ack in ipairs(train.acks) do visit.acks[i] = analyse_ack(ack, visit) end
    local is_copy = visit.in_lane and visit.in_lane.kind == "seen"
    if region and not train.marker and not is_copy then take_pieces(train, region, subframes, visit) end
end

-- What the link takes, as the two ends' hellos say.
local function link_mtu(train, visit, destination)
    local from, to = resolved(visit.from), resolved(visit.to)
    local own, other = from.links[train.link], to.mtus[destination]
    if own and other then return math.min(own, other) end
    return own or other
end

---------------------------------------------------------------------------------------------------------------
-- Train: showing

local function show_ack(tree, tvb, ack, found)
    local at = ack.at
    tree:add(f["ack.link"], tvb(at, 1))
    tree:add(f["ack.reserved"], tvb(at + 1, 1))
    local incarnation = tree:add(f["ack.incarnation"], tvb(at + 2, 2))
    tree:add(f["ack.delay"], tvb(at + 4, 4))
    local newest = tree:add(f["ack.newest"], tvb(at + 8, 4))
    tree:add(f["ack.bitmap"], tvb(at + 12, 8))
    generated(tree:add(f["ack.named"], tvb(at + 8, 12), ack.named))
    if not found or not packtrain.prefs.analysis then return end
    if found.stale then
        incarnation:add_proto_expert_info(x["stale_incarnation"], "stale_incarnation: acknowledges " .. found.stale)
    end
    if found.unseen then
        newest:add_proto_expert_info(x["analysis.ack_unseen"],
            ("Acknowledges link sequence %d of link %d, which was not seen"):format(found.unseen, ack.link))
    end
    if found.acks then
        generated(tree:add(f["acks_frame"], tvb(at + 8, 4), found.acks.number))
        if found.time >= 0 then generated(tree:add(f["ack_time"], tvb(at + 8, 4), seconds(found.time))) end
        -- Clocks of a capture are coarser than the delay, sometimes.
        if found.rtt >= 0 then generated(tree:add(f["ack_rtt"], tvb(at + 4, 4), seconds(found.rtt))) end
    end
end

local function show_newest(tree, tvb, at, length, train)
    for entry = at, at + length - 4, 4 do
        local link, behind = tvb(entry, 1):uint(), tvb(entry + 1, 3):uint()
        local sequence = minus(train.train_seq, behind)
        local far = behind == 0xffffff and ", or farther back" or ""
        local text = "On link " .. link .. " nothing newer than train %d%s"
        if link == 0xff then text = "Of what goes again nothing newer than train %d%s" end
        if link == 0xfe then text = "Of what goes again nothing older than train %d%s" end
        local sub = tree:add(packtrain, tvb(entry, 4), text:format(sequence, far))
        sub:add(f["newest.link"], tvb(entry, 1))
        sub:add(f["newest.distance"], tvb(entry + 1, 3))
        generated(sub:add(f["newest.train"], tvb(entry + 1, 3), sequence))
    end
end

local function show_train_option(tree, tvb, option, train, acks, visit)
    local at, length = option.at, option.length
    local name = TRAIN_OPTIONS[option.kind] or ("0x%02x, not known"):format(option.kind)
    local sub = tree:add(packtrain, tvb(at - 2, 2 + length), "Option: " .. name)
    sub:add(f["option.type"], tvb(at - 2, 1))
    sub:add(f["option.length"], tvb(at - 1, 1))
    if option.kind == 0x01 then
        acks.count = acks.count + 1
        local ack = train.acks[acks.count]
        sub:append_text((": link %d up to %d"):format(ack.link, ack.newest))
        show_ack(sub, tvb, ack, visit.acks[acks.count])
    elseif option.kind == 0x02 then
        show_newest(sub, tvb, at, length, train)
    elseif option.kind == 0x03 then
        sub:add(f["direct.sent"], tvb(at, 4))
        sub:add(f["direct.seen_sent"], tvb(at + 4, 4))
        sub:add(f["direct.seen_received"], tvb(at + 8, 4))
    elseif option.kind == 0x04 then
        sub:add(f["fence.link"], tvb(at, 1))
        sub:add(f["fence.remote_link"], tvb(at + 1, 1))
        sub:add(f["fence.reserved"], tvb(at + 2, 2))
        sub:add(f["fence.from"], tvb(at + 4, 4))
        sub:add(f["fence.sent"], tvb(at + 8, 4))
    elseif option.kind == 0x05 then
        sub:add(f["behind.lane"], tvb(at, 1))
        sub:add(f["behind.reserved"], tvb(at + 1, 3))
        sub:add(f["behind.from"], tvb(at + 4, 4))
        sub:add(f["behind.last"], tvb(at + 8, 4))
    elseif option.kind == 0x06 then
        sub:add(f["kept_from"], tvb(at, 4))
    elseif option.kind == 0x07 then
        sub:add(f["direct.late"], tvb(at, 4))
    elseif option.kind == 0x81 and length == 25 then
        sub:add(f["security.key_id"], tvb(at, 1))
        sub:add(f["security.nonce"], tvb(at + 1, 8))
        sub:add(f["security.tag"], tvb(at + 9, 16))
    elseif length > 0 then
        sub:add(f["option.value"], tvb(at, length))
    end
end

local function frames_text(visits)
    local list = {}
    for i, visit in ipairs(visits) do
        if i > 8 then
            list[#list + 1] = "…"
            break
        end
        list[#list + 1] = tostring(visit.number)
    end
    return table.concat(list, ", ")
end

-- A gap, and what became of it where that is known: only once all packets were seen.
local function show_gap(item, gap, prefix, what, is_later)
    generated(item:add(f[prefix .. "gap.first"], gap.first))
    generated(item:add(f[prefix .. "gap.count"], gap.count))
    local last = plus(gap.first, gap.count - 1)
    local range = gap.count == 1 and ("%d"):format(gap.first) or ("%d to %d"):format(gap.first, last)
    local text = ("%s %s not seen before this one"):format(what, range)
    if not is_later then
        item:add_proto_expert_info(x["analysis." .. prefix .. "gap"], text)
        return
    end
    local visits, lost = filled(gap)
    if #visits > 0 then text = ("%s; %d came later, by frame %s"):format(text, #visits, frames_text(visits)) end
    item:add_proto_expert_info(x["analysis." .. prefix .. "gap"], text)
    for i, visit in ipairs(visits) do
        if i > 8 then break end
        generated(item:add(f["filled_by"], visit.number))
    end
    if lost > 0 then
        generated(item:add(f[prefix .. "gap.lost"], lost))
        item:add_proto_expert_info(x["analysis." .. prefix .. "lost"],
            ("%d of %s %s never came in this capture"):format(lost, what:lower(), range))
    end
end

local function show_lane_position(item, train, visit, is_later)
    local found = visit.in_lane
    local is_same_copy = found.kind == "seen" and visit.in_link.kind == "seen"
    if found.kind == "seen" then
        if train.replay and not is_same_copy then
            generated(item:add(f["replay_of"], found.of.number))
            item:add_proto_expert_info(x["analysis.replay"],
                ("Train %d again, as a replay: frame %d was first"):format(train.train_seq, found.of.number))
        else
            generated(item:add(f["duplicate_of"], found.of.number))
            item:add_proto_expert_info(x["analysis.duplicate"],
                ("Train %d again: frame %d was first"):format(train.train_seq, found.of.number))
        end
        return
    end
    if train.replay then
        item:add_proto_expert_info(x["analysis.replay"],
            ("Train %d as a replay; the first one was not seen"):format(train.train_seq))
    end
    if found.kind == "gap" then
        show_gap(item, found, "", found.count == 1 and "Train" or "Trains", is_later)
    elseif found.kind == "behind" and not train.replay then
        item:add_proto_expert_info(x["analysis.out_of_order"],
            ("Train %d comes %d behind the newest"):format(train.train_seq, found.behind))
    elseif found.kind == "far" then
        local where = found.ahead > 0 and "ahead of" or "behind"
        refuse(item, nil, "sequence_jump", ("%d %s the newest"):format(math.abs(found.ahead), where))
    end
end

local function show_link_position(item, train, visit, is_later)
    local found = visit.in_link
    if found.kind == "gap" then
        show_gap(item, found, "link_", found.count == 1 and "Link sequence" or "Link sequences", is_later)
    elseif found.kind == "behind" then
        item:add_proto_expert_info(x["analysis.link_out_of_order"],
            ("Link sequence %d of link %d comes %d behind the newest"):format(train.link_seq, train.link, found.behind))
    end
end

local function show_unseen(item, visit, is_later)
    local parts = {}
    for _, unseen in ipairs(visit.unseen) do
        local text = ("%s of %s up to this one not seen"):format(plural(unseen.count, unseen.what), "those sent")
        if is_later then
            local visits, lost = filled(unseen)
            text = ("%s; %d came later"):format(text, #visits)
            if lost > 0 then text = text .. (", %d never"):format(lost) end
        end
        parts[#parts + 1] = text
    end
    item:add_proto_expert_info(x["analysis.marker_unseen"], table.concat(parts, "; "))
end

local function show_analysis(items, train, visit, is_later)
    if not packtrain.prefs.analysis or train.refused then return end
    generated(items.train:add(f["stream"], stream_number(visit.stream)))
    generated(items.train:add(f["sender"], station_name(visit.from)))
    generated(items.train:add(f["receiver"], station_name(visit.to)))
    if visit.refused then refuse(items.incarnation, nil, visit.refused, visit.refused_why) end
    if visit.restart then items.incarnation:add_proto_expert_info(x["analysis.restart"], visit.restart) end
    if visit.unseen then show_unseen(items.train_seq, visit, is_later) end
    if visit.in_lane then show_lane_position(items.train_seq, train, visit, is_later) end
    if visit.in_link then show_link_position(items.link_seq, train, visit, is_later) end
    if not is_later then return end
    if visit.acked then
        generated(items.train:add(f["acked_by"], visit.acked.by.number))
        if visit.acked.time >= 0 then generated(items.train:add(f["acked_after"], seconds(visit.acked.time))) end
    elseif visit.is_probe and not (visit.in_lane and visit.in_lane.kind == "seen") then
        -- A copy of a probe is not acknowledged at all.
        items.train_seq:add_proto_expert_info(x["analysis.probe_unanswered"],
            "No acknowledgement in this capture names this probe")
    end
end

-- Destination and source, raw, and of which frames; restored where the subframe leaves them out.
local function restored_addresses(header, visit, outer)
    if header.dst then return { dst = header.dst, src = header.src } end
    local dst, dst_told = pt0_of(visit.to, visit.number)
    local src, src_told = pt0_of(visit.from, visit.number)
    return {
        dst = dst or outer.destination_bytes,
        src = src or outer.source_bytes,
        told = { src_told, dst_told },
        restored = true,
        placeholder = not (dst and src),
    }
end

local function show_restored(tree, addresses)
    if not addresses.restored then return end
    generated(tree:add(f["subframe.dst"], Address.ether(address_text(addresses.dst))))
    generated(tree:add(f["subframe.src"], Address.ether(address_text(addresses.src))))
    local told = {}
    for _, number in pairs(addresses.told) do
        if not told[number] then generated(tree:add(f["subframe.addresses_from"], number)) end
        told[number] = true
    end
    if addresses.placeholder then generated(tree:add(f["subframe.placeholder"], true)) end
end

local function inner_tvb(addresses, ether_type, payload, name)
    local header = addresses.dst .. addresses.src .. string.char(math.floor(ether_type / 256), ether_type % 256)
    return ByteArray.new(header .. payload, true):tvb(name)
end

local function segments_of(gso, frame_length)
    return math.max(1, math.ceil((frame_length - gso.header_length) / gso.segment_length))
end

local function show_offload(tree, tvb, gso)
    local at = gso.at
    local sub = tree:add(packtrain, tvb(at, 8), "Offload: " .. GSO_KINDS[gso.kind])
    sub:add(f["gso.cwr"], tvb(at, 1))
    sub:add(f["gso.kind"], tvb(at, 1))
    sub:add(f["gso.checksum_offset"], tvb(at + 1, 1))
    sub:add(f["gso.header_length"], tvb(at + 2, 2))
    sub:add(f["gso.segment_length"], tvb(at + 4, 2))
    sub:add(f["gso.checksum_start"], tvb(at + 6, 2))
    return sub
end

-- The frame that a last piece completes.
local function show_reassembled(tree, root, pinfo, frame, piece, visit, outer)
    local sub = generated(tree:add(f["fragments"]))
    sub:set_text(("Reassembled: %d bytes in %s"):format(frame.total, plural(#frame.pieces, "piece")))
    for _, part in ipairs(frame.pieces) do
        local item = generated(sub:add(f["fragment"], part.visit.number))
        item:append_text((", bytes %d to %d, train %d"):format(part.offset, part.offset + part.length - 1, part.sequence))
    end
    generated(sub:add(f["fragment.count"], #frame.pieces))
    generated(sub:add(f["reassembled.length"], frame.total))
    local addresses = restored_addresses(frame, visit, outer)
    local name = ("Reassembled frame %d"):format(piece.id)
    local whole = inner_tvb(addresses, frame.ether_type, frame.payload, name)
    generated(sub:add(f["reassembled.data"], whole(14, frame.total)))
    show_restored(sub, addresses)
    if frame.gso and frame.gso.segment_length > 0 then
        generated(sub:add(f["gso.segments"], segments_of(frame.gso, 14 + frame.total)))
    end
    if packtrain.prefs.inner then dissect_frame(whole, pinfo, root) end
end

local function show_piece(tree, root, pinfo, sub, piece, visit, outer, is_later)
    if not piece or not packtrain.prefs.reassemble then return end
    local frame = piece.frame
    if piece.bad then
        refuse(tree, nil, "reassembly_bad_piece")
    elseif not frame then
        refuse(tree, nil, "stray_piece", is_later and "its first piece never came" or "its first piece was not seen")
    elseif frame.done == piece then
        show_reassembled(tree, root, pinfo, frame, piece, visit, outer)
    elseif frame.done then
        if is_later then generated(tree:add(f["reassembled_in"], frame.done.visit.number)) end
    end
    -- Of a frame that was completed since, no piece is missing.
    if not frame or piece.bad or is_later and frame.done then return end
    if is_later and sub.kind == KIND.FIRST and not frame.bad then
        local texts = {}
        for i, hole in ipairs(holes(frame)) do
            texts[i] = ("%d to %d"):format(hole[1], hole[2] - 1)
        end
        refuse(tree, nil, "reassembly_hole", "bytes " .. table.concat(texts, ", ") .. " never came")
    elseif not piece.follows then
        refuse(tree, nil, "reassembly_hole", ("the bytes before %d were not seen"):format(piece.offset))
    end
end

local KIND_NAMES = { "Frame", "First piece of frame", "Piece of frame" }

local SUBFRAME_FIELDS = { "payload" }
for name in pairs(f) do
    if name:find("^subframe%.") or name:find("^piece%.") or name:find("^gso%.") or name:find("^delta") then
        SUBFRAME_FIELDS[#SUBFRAME_FIELDS + 1] = name
    end
end

-- Whether anybody looks at the fields of subframes, or filters by one. Trains have many, and to add them all for
-- nobody takes as long as all the rest of the message.
local function wants_subframes(tree)
    for _, name in ipairs(SUBFRAME_FIELDS) do
        if tree:referenced(f[name]) then return true end
    end
    return false
end

local function show_subframe_header(item, tvb, sub)
    local at = sub.at
    item:set_text(("Subframe %d: %s"):format(sub.place, KIND_NAMES[sub.kind] or "unknown"))
    if sub.id then item:append_text((" %d"):format(sub.id)) end
    if sub.length then item:append_text(", " .. plural(sub.length, "byte")) end
    item:add(f["subframe.flags"], tvb(at, 1))
    show_bits(item, tvb(at, 1), { "subframe.has_addresses", "subframe.has_ethertype", "subframe.has_offload",
        "subframe.reserved", "subframe.kind" })
    if sub.length then item:add(f["subframe.length"], tvb(at + 1, 2)) end
    if sub.addresses_at then
        item:add(f["subframe.dst"], tvb(sub.addresses_at, 6))
        item:add(f["subframe.src"], tvb(sub.addresses_at + 6, 6))
    end
    if sub.type_at then
        item:add(f["subframe.ethertype"], tvb(sub.type_at, 2))
    elseif sub.ether_type then
        generated(item:add(f["subframe.ethertype"], tvb(sub.payload_at, 1), sub.ether_type))
    end
    if sub.gso and GSO_KINDS[sub.gso.kind] then
        local offload = show_offload(item, tvb, sub.gso)
        if sub.kind == KIND.FRAME and not sub.bad_gso then
            generated(offload:add(f["gso.segments"], segments_of(sub.gso, 14 + sub.length)))
        end
    end
    if sub.piece_at then
        item:add(f["piece.id"], tvb(sub.piece_at, 2))
        item:add(f[sub.kind == KIND.FIRST and "piece.total" or "piece.offset"], tvb(sub.piece_at + 2, 2))
    end
    if sub.payload_at then item:add(f["payload"], tvb(sub.payload_at, sub.length)) end
end

-- What a DELTA tells of a field.
local function told_text(value)
    if value.bytes then
        local is_address = value.row.width == 16 or value.row.name:find("IPv4 %l+$") and value.row.width == 4
        if not is_address then return ("%s: 0x%s"):format(value.row.name, hex_of_raw(value.bytes)) end
        local raw = ByteArray.new(value.bytes, true):tvb()
        return ("%s: %s"):format(value.row.name, tostring(value.row.width == 16 and raw(0, 16):ipv6() or raw(0, 4):ipv4()))
    end
    local which = value.distance < 0 and "less" or "more"
    return ("%s: %d %s than expected"):format(value.row.name, math.abs(value.distance), which)
end

-- How a restored subframe stands in the train, where that is not as it was.
local function show_delta(tree, content, delta)
    local function bytes_at(at, length) return content.tvb(content.at + at, length) end
    local told, fields = {}, delta.fields
    for i = 1, fields do told[#told + 1] = delta.told[i] end
    local item = tree:add(f["delta"], bytes_at(delta.at, delta.length))
    item:set_text(("DELTA of %s, told apart from subframe %d: %d of its %s not as expected"):format(
        plural(delta.length, "byte"), delta.reference, #told, plural(fields, "field")))
    show_bits(item, bytes_at(delta.at, 1), { "delta.has_slot", "delta.has_length", "delta.has_fields", "delta.rtp" })
    if delta.slot_at then
        show_bits(item, bytes_at(delta.slot_at, 1), { "delta.new_slot", "delta.slot" })
    else
        generated(item:add(f["delta.slot"], delta.slot))
    end
    local length, mask = delta.told_length, delta.mask
    if length then item:add(f["delta.length"], bytes_at(length.at, length.length), length.value) end
    if mask then item:add(f["delta.mask"], bytes_at(mask.at, mask.length), mask.value) end
    for _, value in ipairs(told) do
        item:add(f["delta.field"], bytes_at(value.at, value.length), told_text(value))
    end
    generated(item:add(f["delta.reference"], delta.reference))
end

local function show_subframe(tree, root, pinfo, region, sub, visit, outer, is_later, coding, is_wanted)
    local tvb = region.tvb
    local item = tree:add(f["subframe"], tvb(sub.at, sub.stop - sub.at))
    if is_wanted then
        show_subframe_header(item, tvb, sub)
        if coding and coding.deltas[sub.place] then show_delta(item, coding.content, coding.deltas[sub.place]) end
    end
    if sub.bad_gso then refuse(item, nil, "bad_gso", sub.bad_gso) end
    if sub.refused then return item end
    if sub.kind ~= KIND.FRAME then
        show_piece(item, root, pinfo, sub, visit.pieces[sub.place], visit, outer, is_later)
        return item
    end
    local addresses = restored_addresses(sub, visit, outer)
    if is_wanted then show_restored(item, addresses) end
    if not packtrain.prefs.inner then return item end
    if sub.addresses_at and sub.type_at and not sub.gso and not coding then
        -- It stands there as it is on a wire of its own.
        dissect_frame(tvb(sub.addresses_at, sub.stop - sub.addresses_at):tvb(), pinfo, root)
    else
        local name = (coding and "Restored frame %d" or "Frame %d of the train"):format(sub.place)
        dissect_frame(inner_tvb(addresses, sub.ether_type, tvb:raw(sub.payload_at, sub.length), name), pinfo, root)
    end
    return item
end

local function show_train_header(tree, tvb)
    local flags = tree:add(f["flags"], tvb(1, 1))
    show_bits(flags, tvb(1, 1), { "ack_now", "marker", "replay", "coded", "repairs", "lossless" })
    tree:add(f["lane"], tvb(2, 1))
    tree:add(f["link"], tvb(3, 1))
    local items = { train = tree }
    items.incarnation = tree:add(f["incarnation"], tvb(4, 2))
    tree:add(f["options_length"], tvb(6, 2))
    items.train_seq = tree:add(f["train_seq"], tvb(8, 4))
    items.link_seq = tree:add(f["link_seq"], tvb(12, 4))
    return items
end

local function show_block(tree, tvb, content_at, block)
    local at = content_at + block.at
    local data_at = content_at + (block.data_at or block.at)
    local stop = math.min(data_at + block.length, tvb:len())
    local item = tree:add(f["coded.block"], tvb(at, stop - at))
    item:set_text(("Block %d: %s, %s"):format(block.number, plural(block.length, "byte"),
        block.is_stored and "as they were" or ("compressed from %d"):format(block.plain_length)))
    show_bits(item, tvb(at, 2), { "coded.block.stored", "coded.block.length" })
    if not block.is_stored then item:add(f["coded.block.plain_length"], tvb(at + 2, 2)) end
    item:add(f["coded.block.data"], tvb(data_at, stop - data_at))
end

-- The dictionary that the sender's hellos have named.
local function dictionary_text(visit)
    local id = resolved(visit.from).dictionary
    return id and ("dictionary 0x%08x"):format(id) or "a dictionary"
end

-- What a coded train has in place of subframes. What could be restored of it is shown behind.
local function show_coding(tree, tvb, coding, visit)
    local at = coding.at
    local range = at < tvb:len() and tvb(at) or tvb(0)
    local sub = tree:add(packtrain, range, "Coded subframes")
    if coding.kind then
        sub:add(f["coded.coding"], tvb(at, 1))
        sub:add(f["coded.checksum"], tvb(at + 1, 4))
        sub:append_text((": %s"):format(CODINGS[coding.kind] or "of an unknown kind"))
    end
    for _, block in ipairs(coding.blocks) do show_block(sub, tvb, at + 5, block) end
    if coding.region then
        generated(sub:add(f["coded.length"], coding.stop - at))
        generated(sub:add(f["coded.restored_length"], coding.restored_length))
        generated(sub:add(f["coded.deltas"], coding.delta_count))
        sub:append_text((", %s restored from %d"):format(plural(coding.restored_length, "byte"), coding.stop - at))
        return
    end
    local data_at = coding.kind and at + 5 or at
    if #coding.blocks == 0 and data_at < tvb:len() then sub:add(f["data"], tvb(data_at)) end
    if coding.refused and is_cut_short(tvb) then
        sub:add_proto_expert_info(x["analysis.cut_short"])
    elseif coding.refused then
        refuse(sub, nil, coding.refused, coding.why)
    elseif coding.unread == "mixing" then
        sub:add_proto_expert_info(x["analysis.mixing"], "Coded by mixing, and not restored: a preference says so")
    elseif coding.unread == "dictionary" then
        sub:add_proto_expert_info(x["analysis.dictionary"],
            ("Compressed with %s, and needs it to be restored"):format(dictionary_text(visit)))
    end
end

local function train_info(train, visit, counts, fill)
    local parts = {}
    local coding = train.coding and (CODINGS[train.coding.kind] or "unknown")
    if train.marker then
        parts[1] = ("Marker on link %d: up to train %d"):format(train.link, train.train_seq)
    elseif coding and not train.coding.region then
        parts[1] = ("Train %d on link %d: coded (%s)"):format(train.train_seq, train.link, coding)
    elseif counts.frames + counts.pieces == 0 and not coding then
        parts[1] = ("Probe %d on link %d"):format(train.train_seq, train.link)
    else
        local inside = {}
        if counts.frames > 0 then inside[#inside + 1] = plural(counts.frames, "frame") end
        if counts.pieces > 0 then inside[#inside + 1] = plural(counts.pieces, "piece") end
        if fill then inside[#inside + 1] = ("fill %d %%"):format(fill) end
        if coding then inside[#inside + 1] = ("coded (%s)"):format(coding) end
        parts[1] = ("Train %d on link %d: %s"):format(train.train_seq, train.link, table.concat(inside, ", "))
    end
    if train.replay then parts[#parts + 1] = "REPLAY" end
    if train.ack_now and not visit.is_probe then parts[#parts + 1] = "ACK-NOW" end
    for _, ack in ipairs(train.acks) do
        parts[#parts + 1] = ("ACK link %d up to %d"):format(ack.link, ack.newest)
    end
    if visit.refused then parts[#parts + 1] = "[" .. visit.refused .. "]" end
    return table.concat(parts, ", ")
end

local function dissect_train(tvb, pinfo, tree, root)
    local outer = outer_addresses(pinfo)
    local train = read_train(tvb)
    if not train.has_header then
        if is_cut_short(tvb) then
            tree:add_proto_expert_info(x["analysis.cut_short"])
        else
            refuse(tree, tvb(0), "truncated", "shorter than a train's header")
        end
        return "Train, truncated", {}
    end
    local region, subframes, stop, bad = nil, {}, nil, nil
    local visit, is_first = visit_of(tvb, pinfo)
    if is_first then visit.from, visit.to = station_of(outer.source), station_of(outer.destination) end
    if train.subframes_at <= tvb:len() then
        region = plain_region(tvb, train)
        if region and not train.marker then subframes, stop, bad = read_subframes(region) end
    end
    if is_first then first_visit_of_train(train, region, subframes, visit) end
    local is_later = not is_first

    local items = show_train_header(tree, tvb)
    local acks = { count = 0 }
    for _, option in ipairs(train.options) do show_train_option(tree, tvb, option, train, acks, visit) end
    if train.refused == "truncated" and is_cut_short(tvb) then
        tree:add_proto_expert_info(x["analysis.cut_short"])
    elseif train.refused then
        refuse(tree, tvb(train.refused_at[1], train.refused_at[2]), train.refused)
    end
    show_analysis(items, train, visit, is_later)
    local coding = train.coding
    if coding then
        show_coding(tree, tvb, coding, visit)
        if not region then return train_info(train, visit) end
        stop = coding.stop -- in the message, which is what a link carries
    elseif not region then
        return ("Train %d on link %d, truncated"):format(train.train_seq, train.link)
    end

    local counts = { frames = 0, pieces = 0 }
    for _, sub in ipairs(subframes) do
        if not sub.refused then
            local which = sub.kind == KIND.FRAME and "frames" or "pieces"
            counts[which] = counts[which] + 1
        end
    end
    local fill
    if not train.marker then
        generated(tree:add(f["frames"], counts.frames))
        generated(tree:add(f["pieces"], counts.pieces))
        if visit.is_probe then generated(tree:add(f["probe"], true)) end
        generated(tree:add(f["used"], stop))
        visit.mtu = visit.mtu or link_mtu(train, visit, outer.destination)
        local mtu = visit.mtu or packtrain.prefs.mtu
        if mtu > 0 and #subframes > 0 then
            fill = math.floor(100 * stop / mtu + 0.5)
            generated(tree:add(f["link_mtu"], mtu))
            generated(tree:add(f["fill"], math.min(fill, 255)))
        end
    end
    local is_wanted = wants_subframes(tree)
    for _, sub in ipairs(subframes) do
        local item = show_subframe(tree, root, pinfo, region, sub, visit, outer, is_later, coding, is_wanted)
        if sub.refused == "truncated" and is_cut_short(tvb) then
            item:add_proto_expert_info(x["analysis.cut_short"])
        elseif sub.refused then
            refuse(item, nil, sub.refused, sub.why)
        end
    end
    local padded_at = train.marker and train.subframes_at or stop
    if (coding or not bad) and padded_at < tvb:len() then tree:add(f["padding"], tvb(padded_at)) end
    return train_info(train, visit, counts, fill)
end

---------------------------------------------------------------------------------------------------------------
-- Hello

-- What a hello says, as far as it may be believed: `refused` and `why` where it may not.
local function read_hello(tvb)
    local hello = { links = {}, options = {}, stations = 0, count = 0 }
    local function refused(reason, why)
        hello.refused, hello.why = hello.refused or reason, hello.why or why
        return hello
    end
    if tvb:len() < 40 then return refused("truncated", "shorter than a hello's header") end
    hello.has_header = true
    local flags = tvb(1, 1):uint()
    hello.answer, hello.goodbye, hello.away = has(flags, 1), has(flags, 2), has(flags, 4)
    hello.full, hello.past = has(flags, 8), has(flags, 16)
    hello.link = tvb(2, 1):uint()
    hello.node_id = tvb:raw(4, 8)
    local recipient = tvb:raw(12, 8)
    if recipient ~= ("\0"):rep(8) then hello.recipient = recipient end
    hello.address = tvb:raw(28, 6)
    hello.epoch = tvb(37, 1):uint()
    hello.link_count = tvb(3, 1):uint()
    hello.options_at = 40 + hello.link_count * 28
    hello.options_length = tvb(38, 2):uint()
    if hello.node_id == ("\0"):rep(8) then refused("bad_hello", "node id 0") end
    if tvb(36, 1):uint() == 0 then refused("bad_hello", "no lanes") end
    if hello.link_count > LINKS_MAX then refused("bad_hello", "more than 16 links") end
    if hello.options_at + hello.options_length > tvb:len() then
        refused("truncated", "shorter than its links and options")
    end
    if not is_own(hello.address) then refused("bad_hello", "pt0's address is nobody's own") end
    for i = 0, hello.link_count - 1 do
        local at = 40 + 28 * i
        if at + 28 > tvb:len() then break end
        local link = {
            at = at,
            link = tvb(at, 1):uint(),
            mtu = tvb(at + 2, 2):uint(),
            address = tvb:raw(at + 4, 6),
            newest_train = tvb(at + 20, 4):uint(),
            newest_link = tvb(at + 24, 4):uint(),
        }
        local mark = tvb:raw(at + 10, 6)
        if mark ~= ("\0"):rep(6) then link.mark = mark end
        if not is_own(link.address) or link.mark and not is_own(link.mark) then
            refused("bad_hello", "a link's address is nobody's own")
        end
        for _, other in ipairs(hello.links) do
            if other.link == link.link then refused("bad_hello", ("link %d twice"):format(link.link)) end
        end
        hello.links[#hello.links + 1] = link
    end
    if hello.options_at > tvb:len() then return hello end
    local stop = math.min(hello.options_at + hello.options_length, tvb:len())
    local reason = walk_options(tvb, hello.options_at, stop, function(kind, at, length)
        table.insert(hello.options, { kind = kind, at = at, length = length })
        if kind == 0x01 then
            if length % 6 ~= 0 then return "bad_option" end
            hello.stations = hello.stations + length / 6
            if hello.stations > STATIONS_MAX then refused("bad_hello", "more than 256 stations") end
            for station = at, at + length - 6, 6 do
                if not is_own(tvb:raw(station, 6)) then refused("bad_hello", "a station is nobody's own address") end
            end
        elseif kind == 0x02 then
            if length > 0 and not is_plain_text(tvb:raw(at, length)) then
                refused("bad_hello", "a software name that is not plain UTF-8")
            end
        elseif kind == 0x03 then
            if length ~= 4 then return "bad_option" end
            hello.count = tvb(at, 4):uint()
        elseif kind == 0x04 and length ~= 2 then
            return "bad_option"
        elseif kind == 0x05 then
            if length ~= 4 then return "bad_option" end
            local id = tvb(at, 4):uint()
            hello.dictionary = id ~= 0 and id or nil
        elseif kind == 0x06 and length ~= 2 then
            return "bad_option"
        elseif kind == 0x07 then
            if length % 4 ~= 0 or length / 4 > NEWEST_IN_LANES_MAX then return "bad_option" end
            hello.newest_in_lanes = {}
            for lane = at, at + length - 4, 4 do table.insert(hello.newest_in_lanes, tvb(lane, 4):uint()) end
        elseif kind >= 0x80 then
            return "unknown_critical_option"
        end
    end)
    if reason then refused(reason) end
    return hello
end

-- What a hello tells of who is where. Not from a hello that a receiver refuses.
local function learn(hello, source, visit)
    local station = state.nodes[hello.node_id]
    if not station then
        -- A recipient may have been named before it has spoken: it has a station, then, without a hello.
        station = new_station()
        station.node_id = hello.node_id
        state.nodes[hello.node_id] = station
    end
    if station.replaced and visit.time - station.replaced.time < FORMER_NODE_SECONDS then
        visit.refused = "stale_incarnation"
        visit.refused_why = "of a node that another one has replaced"
        return
    end
    station.heard = true
    local former
    local function claim(address)
        local owner = state.stations[address] and resolved(state.stations[address])
        if owner and owner ~= station then
            if owner.node_id then former = owner else merge_stations(station, owner) end
        end
        state.stations[address] = station
    end
    claim(source)
    for _, link in ipairs(hello.links) do
        claim(name_of(link.address))
        if link.mark then
            claim(name_of(link.mark))
            claim(name_of(direct_mark(link.mark)))
        end
        station.links[link.link] = link.mtu
        station.mtus[name_of(link.address)] = link.mtu
    end
    local owner = state.pt0s[hello.address]
    if owner and owner ~= station then former = owner end
    state.pt0s[hello.address] = station
    if former and former ~= station and not former.replaced then
        former.replaced = visit
        station.replaced = nil
        visit.restart = ("Node %s takes the place of node %s"):format(hex_of_raw(hello.node_id), hex_of_raw(former.node_id))
        -- What goes to the new one is refused until it was named; what the former was sent counts no more.
        for _, direction in pairs(state.directions) do
            if direction.to == former then
                local from = direction.from
                station.awaited_of = station.awaited_of or {}
                station.awaited_of[from] = true
            end
        end
        for from in pairs(station.awaited_of or {}) do
            local direction = direction_of(from, station)
            if not direction.expected then direction.awaits_naming = true end
        end
    end
    local last = station.pt0[#station.pt0]
    if not last or last.address ~= hello.address then
        table.insert(station.pt0, { address = hello.address, number = visit.number })
    end
    station.dictionary = hello.dictionary
    visit.from = station
    if not hello.recipient or hello.away then return end
    -- Of a hello that a newer one has overtaken, nothing more is taken.
    if hello.count ~= 0 then
        local behind = station.newest_count and distance(station.newest_count, hello.count) or 0
        if behind > 0 and behind < 256 then return end
        station.newest_count = hello.count
    end
    local to = state.nodes[hello.recipient]
    if not to then
        to = new_station()
        to.node_id = hello.recipient
        state.nodes[hello.recipient] = to
    end
    local direction = direction_of(station, to)
    visit.to, visit.stream = to, direction.stream
    local incarnation = incarnation_of(hello.node_id, hello.epoch)
    if direction.expected and direction.expected ~= incarnation and not visit.restart then
        visit.restart = ("Epoch %d after %d: the sequences to %s begin anew"):format(hello.epoch, direction.epoch,
            station_name(to))
    end
    direction.expected, direction.epoch, direction.current = incarnation, hello.epoch, incarnation
    direction.awaits_naming = nil
    local row = direction.rows[incarnation]
    if not row then return end
    for _, link in ipairs(hello.links) do
        rebase(row.lanes[0], link.newest_train)
        rebase(row.links[link.link], link.newest_link)
    end
    for lane, newest in ipairs(hello.newest_in_lanes or {}) do rebase(row.lanes[lane], newest) end
end

local function show_link_record(tree, tvb, link)
    local at = link.at
    local item = tree:add(f["link_record"], tvb(at, 28))
    item:set_text(("Link %d: %s, MTU %d"):format(link.link, address_text(link.address), link.mtu))
    item:add(f["link_record.link"], tvb(at, 1))
    local bits = item:add(f["link_record.state"], tvb(at + 1, 1))
    show_bits(bits, tvb(at + 1, 1), { "link_record.carrier", "link_record.unused_by_host", "link_record.takes_vlan" })
    item:add(f["link_record.mtu"], tvb(at + 2, 2))
    item:add(f["link_record.address"], tvb(at + 4, 6))
    item:add(f["link_record.mark"], tvb(at + 10, 6))
    if link.mark then
        generated(item:add(f["link_record.direct_mark"], tvb(at + 10, 6), Address.ether(address_text(direct_mark(link.mark)))))
    end
    local rate = item:add(f["link_record.rate"], tvb(at + 16, 4))
    if tvb(at + 16, 4):uint() == 0 then rate:append_text(" (not known)") end
    item:add(f["link_record.newest_train"], tvb(at + 20, 4))
    item:add(f["link_record.newest_link"], tvb(at + 24, 4))
end

local function show_hello_option(tree, tvb, option)
    local at, length = option.at, option.length
    local name = HELLO_OPTIONS[option.kind] or ("0x%02x, not known"):format(option.kind)
    local sub = tree:add(packtrain, tvb(at - 2, 2 + length), "Option: " .. name)
    sub:add(f["hello.option.type"], tvb(at - 2, 1))
    sub:add(f["option.length"], tvb(at - 1, 1))
    if option.kind == 0x01 then
        for station = at, at + length - 6, 6 do sub:add(f["hello.station"], tvb(station, 6)) end
    elseif option.kind == 0x02 and length > 0 then
        sub:add_packet_field(f["hello.software"], tvb(at, length), ENC_UTF_8)
    elseif option.kind == 0x03 and length == 4 then
        sub:add(f["hello.count"], tvb(at, 4))
    elseif option.kind == 0x04 and length == 2 then
        local item = sub:add(f["hello.direct_vlan"], tvb(at, 2))
        local vlan = tvb(at, 2):uint()
        if vlan < 1 or vlan > 4094 then item:append_text(" (none: as if not said)") end
    elseif option.kind == 0x05 and length == 4 then
        local item = sub:add(f["hello.dictionary"], tvb(at, 4))
        if tvb(at, 4):uint() == 0 then item:append_text(" (none)") end
    elseif option.kind == 0x06 and length == 2 then
        local item = sub:add(f["hello.mixing_ns"], tvb(at, 2))
        if tvb(at, 2):uint() == 0 then item:append_text(" (as if not said)") end
    elseif option.kind == 0x07 and length > 0 and length % 4 == 0 then
        for lane = 1, length / 4 do
            sub:add(f["hello.newest_in_lane"], tvb(at + (lane - 1) * 4, 4)):prepend_text(("Lane %d: "):format(lane))
        end
    elseif length > 0 then
        sub:add(f["option.value"], tvb(at, length))
    end
end

local function show_hello_header(tree, tvb)
    local flags = tree:add(f["flags"], tvb(1, 1))
    show_bits(flags, tvb(1, 1), { "hello.answer", "hello.goodbye", "hello.away", "hello.full", "hello.past" })
    tree:add(f["hello.link"], tvb(2, 1))
    tree:add(f["hello.link_count"], tvb(3, 1))
    local items = { node = tree:add(f["hello.node_id"], tvb(4, 8)) }
    tree:add(f["hello.recipient"], tvb(12, 8))
    tree:add(f["line_id"], tvb(20, 4))
    local capabilities = tree:add(f["hello.capabilities"], tvb(24, 4))
    show_bits(capabilities, tvb(24, 4), { "hello.marked_frames", "hello.gso_frames", "hello.direct_frames",
        "hello.coded_trains", "hello.liveness", "hello.repair", "hello.polls" })
    tree:add(f["hello.address"], tvb(28, 6))
    tree:add(f["hello.mtu"], tvb(34, 2))
    tree:add(f["hello.lanes"], tvb(36, 1))
    items.epoch = tree:add(f["hello.epoch"], tvb(37, 1))
    tree:add(f["options_length"], tvb(38, 2))
    return items
end

local function hello_info(hello)
    local parts = { ("Hello of node %s"):format(hex_of_raw(hello.node_id)) }
    if hello.recipient then parts[1] = parts[1] .. (" to node %s"):format(hex_of_raw(hello.recipient)) end
    parts[1] = parts[1] .. (" by link %d: %s"):format(hello.link, plural(hello.link_count, "link"))
    if hello.stations > 0 then parts[#parts + 1] = plural(hello.stations, "station") end
    for _, name in ipairs({ "answer", "goodbye", "away", "full", "past" }) do
        if hello[name] then parts[#parts + 1] = name:upper() end
    end
    if hello.refused then parts[#parts + 1] = "[" .. hello.refused .. "]" end
    return table.concat(parts, ", ")
end

local function dissect_hello(tvb, pinfo, tree)
    local hello = read_hello(tvb)
    local is_cut = hello.refused == "truncated" and is_cut_short(tvb)
    if not hello.has_header then
        if is_cut then
            tree:add_proto_expert_info(x["analysis.cut_short"])
        else
            refuse(tree, tvb(0), hello.refused, hello.why)
        end
        return "Hello, truncated"
    end
    local visit, is_first = visit_of(tvb, pinfo)
    if is_first and not hello.refused then learn(hello, tostring(pinfo.dl_src), visit) end
    local items = show_hello_header(tree, tvb)
    for _, link in ipairs(hello.links) do show_link_record(tree, tvb, link) end
    for _, option in ipairs(hello.options) do show_hello_option(tree, tvb, option) end
    if is_cut then
        tree:add_proto_expert_info(x["analysis.cut_short"])
    elseif hello.refused then
        refuse(tree, nil, hello.refused, hello.why)
    end
    if packtrain.prefs.analysis then
        if visit.stream then generated(tree:add(f["stream"], stream_number(visit.stream))) end
        if visit.refused then refuse(items.node, nil, visit.refused, visit.refused_why) end
        if visit.restart then items.epoch:add_proto_expert_info(x["analysis.restart"], visit.restart) end
    end
    local stop = hello.options_at + hello.options_length
    if not hello.refused and stop < tvb:len() then tree:add(f["padding"], tvb(stop)) end
    return hello_info(hello)
end

---------------------------------------------------------------------------------------------------------------
-- Station message

local function dissect_station(tvb, _, tree)
    if tvb:len() < 16 then
        if is_cut_short(tvb) then
            tree:add_proto_expert_info(x["analysis.cut_short"])
        else
            refuse(tree, tvb(0), "truncated", "shorter than a station message")
        end
        return "Station, truncated"
    end
    local flags = tree:add(f["flags"], tvb(1, 1))
    show_bits(flags, tvb(1, 1), { "station.goodbye", "station.answer" })
    local kind = tree:add(f["station.ethertype"], tvb(2, 2))
    tree:add(f["line_id"], tvb(4, 4))
    local address = tree:add(f["station.address"], tvb(8, 6))
    local mtu = tree:add(f["station.mtu"], tvb(14, 2))
    if not AGGREGATE_TYPES[tvb(2, 2):uint()] then
        refuse(kind, nil, "bad_hello", "no type of aggregates")
    end
    if not is_own(tvb:raw(8, 6)) then refuse(address, nil, "bad_hello", "nobody's own address") end
    if tvb(14, 2):uint() < 256 then refuse(mtu, nil, "bad_hello", "an MTU below 256") end
    if tvb:len() > 16 then tree:add(f["padding"], tvb(16)) end
    local what = has(tvb(1, 1):uint(), 1) and "takes no aggregates from now on"
        or ("takes aggregates by 0x%04x, data of %d bytes"):format(tvb(2, 2):uint(), tvb(14, 2):uint())
    return ("Station %s %s%s"):format(address_text(tvb:raw(8, 6)), what, has(tvb(1, 1):uint(), 2) and ", ANSWER" or "")
end

---------------------------------------------------------------------------------------------------------------
-- Liveness message

local INTERVAL_MAX = 60000000 -- microseconds
local MULTIPLIER_MAX = 50

local function dissect_liveness(tvb, _, tree)
    if tvb:len() < 28 then
        if is_cut_short(tvb) then
            tree:add_proto_expert_info(x["analysis.cut_short"])
        else
            refuse(tree, tvb(0), "truncated", "shorter than a liveness message")
        end
        return "Liveness, truncated"
    end
    local state = tree:add(f["liveness.state"], tvb(1, 1))
    tree:add(f["liveness.diagnostic"], tvb(1, 1))
    local multiplier = tree:add(f["liveness.multiplier"], tvb(2, 1))
    tree:add(f["link"], tvb(3, 1))
    tree:add(f["liveness.remote_link"], tvb(4, 1))
    local flags = tree:add(f["flags"], tvb(5, 1))
    show_bits(flags, tvb(5, 1), { "liveness.asks", "liveness.poll" })
    tree:add(f["incarnation"], tvb(6, 2))
    for at, name in ipairs({ "count", "heard", "heard_age" }) do
        tree:add(f["liveness." .. name], tvb(4 + 4 * at, 4))
    end
    local named = STATES[math.floor(tvb(1, 1):uint() / 16)]
    if not named then refuse(state, nil, "bad_liveness", "no state of a link") end
    for at, name in ipairs({ "desired", "required" }) do
        local micros = tvb(16 + 4 * at, 4)
        local item = tree:add(f["liveness." .. name], micros)
        if micros:uint() == 0 or micros:uint() > INTERVAL_MAX then
            refuse(item, nil, "bad_liveness", "no interval: 1 us to 60 s")
        end
    end
    local times = tvb(2, 1):uint()
    if times == 0 or times > MULTIPLIER_MAX then
        refuse(multiplier, nil, "bad_liveness", "no number of messages that may be missed: 1 to 50")
    end
    if tvb:len() >= 32 then tree:add(f["liveness.heard_long"], tvb(28, 4)) end
    if tvb:len() > 32 then tree:add(f["padding"], tvb(32)) end
    local bits = tvb(5, 1):uint()
    local says = { has(bits, 1) and ", ASKS" or "", has(bits, 2) and ", POLL" or "" }
    if has(bits, 2) and tvb:len() > 64 then says[2] = (", POLL of %d bytes"):format(tvb:len() + 14) end
    return ("Liveness %d of link %d to link %d: %s%s"):format(tvb(8, 4):uint(), tvb(3, 1):uint(), tvb(4, 1):uint(),
        named or "?", table.concat(says))
end

---------------------------------------------------------------------------------------------------------------
-- A message

local DISSECT = { [TYPE.TRAIN] = dissect_train, [TYPE.HELLO] = dissect_hello, [TYPE.STATION] = dissect_station,
    [TYPE.LIVENESS] = dissect_liveness }

function packtrain.dissector(tvb, pinfo, root)
    local kept = keep_columns(pinfo)
    local tree = root:add(packtrain, tvb(0))
    local info
    if tvb:len() == 0 then
        if is_cut_short(tvb) then
            tree:add_proto_expert_info(x["analysis.cut_short"])
        else
            refuse(tree, nil, "truncated", "no message")
        end
        info = "Nothing"
    else
        local first = tvb(0, 1):uint()
        local version, kind = math.floor(first / 16), first % 16
        local version_item, kind_item = tree:add(f["version"], tvb(0, 1)), tree:add(f["type"], tvb(0, 1))
        if version ~= VERSION then
            refuse(version_item, nil, "unknown_version", ("version %d"):format(version))
            info = ("Version %d, not known"):format(version)
        elseif not DISSECT[kind] then
            refuse(kind_item, nil, "unknown_type", ("type %d"):format(kind))
            info = ("Type %d, not known"):format(kind)
        else
            info = DISSECT[kind](tvb, pinfo, tree, root)
        end
    end
    tree:append_text(": " .. info)
    restore_columns(pinfo, kept, "packtrain", info)
    return tvb:len()
end

packtrain.init = init

---------------------------------------------------------------------------------------------------------------
-- Aggregates of the DFAP paper (docs/wire-format.md, "Aggregates")

local PADDED_LENGTH = 46
local TYPE_MIN = 0x0600

-- What an IP header says that it is long; nil where it does not.
local function told_length(tvb, ether_type, at, length)
    if ether_type == 0x0800 and length >= 4 then
        local told = tvb(at + 2, 2):uint()
        return told >= 20 and told or nil
    elseif ether_type == 0x86dd and length >= 6 then
        return tvb(at + 4, 2):uint() + 40
    end
end

-- The packets in it; or the reason why a receiver drops it, and why.
local function read_aggregate(tvb)
    local length = tvb:len()
    if length == 0 then return nil, "truncated", "no count" end
    local n = tvb(0, 1):uint()
    if n == 0 then return nil, "bad_aggregate", "of no packets" end
    local first = 1 + 2 * (n - 1)
    if length < first then return nil, "truncated", "shorter than its offsets" end
    local packets = {}
    for i = 1, n do
        local start = i == 1 and first or tvb(1 + 2 * (i - 2), 2):uint()
        local stop = i == n and length or tvb(1 + 2 * (i - 1), 2):uint()
        if start + 2 >= stop or stop > length then
            return nil, "bad_aggregate", ("packet %d has no room, or lies outside"):format(i)
        end
        local ether_type = tvb(start, 2):uint()
        if ether_type < TYPE_MIN or ether_type == ETHER_TYPE or AGGREGATE_TYPES[ether_type] then
            return nil, "bad_aggregate", ("packet %d is of type 0x%04x, which cannot ride in one"):format(i, ether_type)
        end
        packets[i] = { at = start, ether_type = ether_type, length = stop - start - 2 }
    end
    local last = packets[n]
    if length <= PADDED_LENGTH then
        -- Nothing in the format tells padding: the last packet's own header does.
        local told = told_length(tvb, last.ether_type, last.at + 2, last.length)
        last.length = math.min(told or last.length, last.length)
    end
    return packets
end

local function show_packet(tree, root, tvb, pinfo, packet, number, addresses)
    local at = packet.at
    local item = tree:add(d["packet"], tvb(at, 2 + packet.length))
    item:set_text(("Packet %d: type 0x%04x, %s"):format(number, packet.ether_type, plural(packet.length, "byte")))
    item:add(d["type"], tvb(at, 2))
    generated(item:add(d["length"], tvb(at + 2, packet.length), packet.length))
    item:add(d["payload"], tvb(at + 2, packet.length))
    if not dfap.prefs.inner then return end
    local bytes = tvb:raw(at + 2, packet.length)
    local whole = inner_tvb(addresses, packet.ether_type, bytes, ("Packet %d of the aggregate"):format(number))
    dissect_frame(whole, pinfo, root)
end

function dfap.dissector(tvb, pinfo, root)
    local kept = keep_columns(pinfo)
    local tree = root:add(dfap, tvb(0))
    local outer = outer_addresses(pinfo)
    local packets, reason, why = read_aggregate(tvb)
    local info
    if packets then
        tree:add(d["count"], tvb(0, 1))
        for i = 2, #packets do tree:add(d["offset"], tvb(1 + 2 * (i - 2), 2)) end
        local addresses = { dst = outer.destination_bytes, src = outer.source_bytes }
        for i, packet in ipairs(packets) do show_packet(tree, root, tvb, pinfo, packet, i, addresses) end
        local last = packets[#packets]
        local stop = last.at + 2 + last.length
        if stop < tvb:len() then tree:add(d["padding"], tvb(stop)) end
        info = ("Aggregate: %s, %s"):format(plural(#packets, "packet"), plural(stop, "byte"))
    elseif is_cut_short(tvb) then
        tree:add_proto_expert_info(dx["cut_short"])
        info = "Aggregate, cut short by the capture"
    else
        if tvb:len() > 0 then tree:add(d["count"], tvb(0, 1)) end
        generated(tree:add(d["drop_reason"], reason)):add_proto_expert_info(dx[reason], reason .. ": " .. why)
        info = ("Aggregate [%s]"):format(reason)
    end
    tree:append_text(": " .. info)
    restore_columns(pinfo, kept, "DFAP", info)
    return tvb:len()
end

---------------------------------------------------------------------------------------------------------------
-- Registration

local ether_types = DissectorTable.get("ethertype")
ether_types:add(ETHER_TYPE, packtrain)

local registered = {}

-- What is not wanted for aggregates may be another protocol's.
local function register_aggregates()
    for ether_type, name in pairs({ [0xbbbb] = "bbbb", [0xaaaa] = "aaaa" }) do
        local wanted = dfap.prefs[name]
        if wanted and not registered[ether_type] then
            ether_types:add(ether_type, dfap)
        elseif not wanted and registered[ether_type] then
            ether_types:remove(ether_type, dfap)
        end
        registered[ether_type] = wanted
    end
end

dfap.prefs_changed = register_aggregates
register_aggregates()

-- In the packet list's menu: filters for what the selected packet belongs to.
if gui_enabled() and register_packet_menu then
    local function filter_by(names)
        return function(...)
            local values_of = {}
            for _, info in ipairs({ ... }) do values_of[info.name] = values_of[info.name] or tostring(info.value) end
            local terms = {}
            for _, name in ipairs(names) do
                if not values_of[name] then return end
                local is_text = name == "packtrain.sender" or name == "packtrain.receiver"
                terms[#terms + 1] = ("%s == %s"):format(name, is_text and '"' .. values_of[name] .. '"' or values_of[name])
            end
            set_filter(table.concat(terms, " && "))
            apply_filter()
        end
    end
    register_packet_menu("packtrain/Conversation", filter_by({ "packtrain.stream" }), "packtrain.stream")
    register_packet_menu("packtrain/Direction",
        filter_by({ "packtrain.stream", "packtrain.sender" }), "packtrain.stream")
    register_packet_menu("packtrain/Link of the sender",
        filter_by({ "packtrain.stream", "packtrain.sender", "packtrain.link" }), "packtrain.stream")
end
