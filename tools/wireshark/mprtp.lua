-- Multipath RTP and Multipath RTCP (draft-ietf-avtcore-mprtp-03) for Wireshark and tshark, 3.6 or later:
--
--     tshark -X lua_script:tools/wireshark/mprtp.lua -V -r capture.pcap
--
-- In Wireshark put this file, or a link to it, into the folder of personal Lua plugins (Help > About > Folders).
--
-- A flow is recognised by its first packet of Multipath RTCP; RTP before it, and RTP alone, is dissected by
-- `-d udp.port==PORT,mprtp_mux` ("Decode As"). Reports on a subflow are dissected as RTCP inside the block that carries
-- them. The identifier of the header extension element is negotiated: see the preference "mprtp.element_id".

local MPRTCP = 211
local SUBFLOW_REPORT, IPV4, IPV6, NAME = 0, 1, 2, 3
-- RTCP's packet types that distinguish it from RTP on one port (RFC 5761, section 4).
local FIRST_TYPE, LAST_TYPE = 192, 223

-- The header extension element (section 9.1).

local mprtp = Proto("mprtp", "Multipath RTP")
mprtp.prefs.element_id =
  Pref.uint("Element identifier", 6, "Identifier of the header extension element (a=extmap), 1 to 14")

local MPIDS = { [0] = "Subflow RTP header" }
mprtp.fields.mpid = ProtoField.uint8("mprtp.mpid", "MPID", base.DEC, MPIDS, 0xf0, "What the element carries")
mprtp.fields.length = ProtoField.uint8("mprtp.length", "Length", base.DEC, nil, 0x0f, "Bytes that follow")
mprtp.fields.subflow = ProtoField.uint16("mprtp.subflow", "Subflow", base.DEC, nil, nil, "The path that carries the packet")
mprtp.fields.sequence =
  ProtoField.uint16("mprtp.fssn", "Sequence number in the subflow", base.DEC, nil, nil, "Flow-specific sequence number")
mprtp.experts.malformed =
  ProtoExpert.new("mprtp.malformed", "Not a subflow's header", expert.group.MALFORMED, expert.severity.WARN)

function mprtp.dissector(buffer, pinfo, tree)
  local size = buffer:len()
  if size == 0 then return 0 end
  local item = tree:add(mprtp, buffer())
  item:add(mprtp.fields.mpid, buffer(0, 1))
  item:add(mprtp.fields.length, buffer(0, 1))
  if buffer(0, 1):uint() ~= 0x04 or size ~= 5 then
    item:add_proto_expert_info(mprtp.experts.malformed)
    return size
  end
  local subflow, sequence = buffer(1, 2), buffer(3, 2)
  item:add(mprtp.fields.subflow, subflow)
  item:add(mprtp.fields.sequence, sequence)
  item:append_text(string.format(", subflow %d, number %d", subflow:uint(), sequence:uint()))
  pinfo.cols.info:append(string.format(", Subflow=%d, FSSN=%d", subflow:uint(), sequence:uint()))
  return size
end

local elements = DissectorTable.get("rtp.ext.rfc5285.id")
local registered = mprtp.prefs.element_id
elements:add(registered, mprtp)
function mprtp.prefs_changed()
  if registered ~= mprtp.prefs.element_id then
    elements:remove(registered, mprtp)
    registered = mprtp.prefs.element_id
    elements:add(registered, mprtp)
  end
end

-- Multipath RTCP (sections 9.2 and 9.3).

local mprtcp = Proto("mprtcp", "Multipath RTCP")

local TYPES = {
  [SUBFLOW_REPORT] = "Subflow-specific report",
  [IPV4] = "IPv4 address",
  [IPV6] = "IPv6 address",
  [NAME] = "DNS name",
}
-- Weir checks that the other end answers on a new path, or one that failed, before it sends media there: 8 octets in an
-- APP packet, and the same octets back. The draft leaves such checks to ICE.
local CHECK = "WPCK"
local CHECKS = { [0] = "Challenge", [1] = "Response" }

local fields = mprtcp.fields
fields.length = ProtoField.uint16("mprtcp.length", "Length in words", base.DEC)
fields.sender = ProtoField.uint32("mprtcp.sender_ssrc", "Sender SSRC", base.HEX)
fields.media = ProtoField.uint32("mprtcp.media_ssrc", "Media SSRC", base.HEX)
fields.block_type = ProtoField.uint8("mprtcp.type", "Type", base.DEC, TYPES)
fields.block_length = ProtoField.uint8("mprtcp.block_length", "Block length in words", base.DEC)
fields.subflow = ProtoField.uint16("mprtcp.subflow", "Subflow", base.DEC)
fields.port = ProtoField.uint16("mprtcp.port", "RTP port", base.DEC)
fields.ipv4 = ProtoField.ipv4("mprtcp.ipv4", "Interface address")
fields.ipv6 = ProtoField.ipv6("mprtcp.ipv6", "Interface address")
fields.name = ProtoField.string("mprtcp.name", "Interface name", base.UNICODE)
fields.check = ProtoField.uint8("mprtcp.check", "Path check", base.DEC, CHECKS, 0x1f)
fields.octets = ProtoField.bytes("mprtcp.check.octets", "Octets to be returned")
local experts = mprtcp.experts
experts.ignored = ProtoExpert.new(
  "mprtcp.ignored", "A block length of zero is invalid, and the block ignored", expert.group.PROTOCOL, expert.severity.WARN)
experts.malformed =
  ProtoExpert.new("mprtcp.malformed", "Not as in the draft", expert.group.MALFORMED, expert.severity.ERROR)

-- Bytes of a block. Section 9.2.1 leaves the first word out of the length of reports, and section 9.3 counts it for
-- addresses.
local function block_size(block_type, words)
  if words == 0 then return 4 end
  return 4 * (block_type == SUBFLOW_REPORT and words + 1 or words)
end

-- Bytes of the RTCP packet at an offset; nil if there is no whole one.
local function packet_size(buffer, at)
  if at + 4 > buffer:len() then return nil end
  local kind = buffer(at + 1, 1):uint()
  local size = 4 * (buffer(at + 2, 2):uint() + 1)
  if buffer(at, 1):bitfield(0, 2) ~= 2 or kind < FIRST_TYPE or kind > LAST_TYPE then return nil end
  return at + size <= buffer:len() and size or nil
end

local function path_checks(reports, tree)
  local at = 0
  while true do
    local size = packet_size(reports, at)
    if not size then return end
    if reports(at + 1, 1):uint() == 204 and size == 20 and reports(at + 8, 4):string() == CHECK then
      tree:add(fields.check, reports(at, 1))
      tree:add(fields.octets, reports(at + 12, 8))
    end
    at = at + size
  end
end

local function dissect_reports(body, pinfo, tree)
  local subflow = body(0, 2)
  tree:add(fields.subflow, subflow)
  tree:append_text(string.format(" on subflow %d", subflow:uint()))
  if body:len() > 2 then
    local reports = body(2):tvb()
    path_checks(reports, tree)
    Dissector.get("rtcp"):call(reports, pinfo, tree)
  end
  return tostring(subflow:uint())
end

local function dissect_interface(block_type, body, tree)
  tree:add(fields.port, body(0, 2))
  local address = body(2)
  local sizes = { [IPV4] = 4, [IPV6] = 16 }
  if sizes[block_type] and address:len() ~= sizes[block_type] then
    tree:add_proto_expert_info(experts.malformed)
  elseif block_type == IPV4 then
    tree:add(fields.ipv4, address)
  elseif block_type == IPV6 then
    tree:add(fields.ipv6, address)
  else
    tree:add(fields.name, address, (address:string():gsub("\0+$", "")))
  end
end

-- One packet of Multipath RTCP.
local function dissect_mprtcp(buffer, pinfo, tree)
  local item = tree:add(mprtcp, buffer())
  item:add(fields.length, buffer(2, 2))
  if buffer:len() < 12 then
    item:add_proto_expert_info(experts.malformed)
    return
  end
  item:add(fields.sender, buffer(4, 4))
  item:add(fields.media, buffer(8, 4))
  local at, subflows = 12, {}
  while at < buffer:len() do
    local left = buffer:len() - at
    local block_type, words = buffer(at, 1):uint(), buffer(at + 1, 1):uint()
    local size = block_size(block_type, words)
    if size > left then
      item:add_proto_expert_info(experts.malformed)
      break
    end
    local name = TYPES[block_type] or string.format("Block of type %d", block_type)
    local block = item:add(mprtcp, buffer(at, size), name)
    block:add(fields.block_type, buffer(at, 1))
    block:add(fields.block_length, buffer(at + 1, 1))
    local body = buffer(at + 2, size - 2):tvb()
    if words == 0 then
      block:add_proto_expert_info(experts.ignored)
    elseif block_type == SUBFLOW_REPORT then
      subflows[#subflows + 1] = dissect_reports(body, pinfo, block)
    elseif TYPES[block_type] and size > 4 then
      dissect_interface(block_type, body, block)
    end
    at = at + size
  end
  pinfo.cols.protocol = "MPRTCP"
  pinfo.cols.info:append(#subflows > 0 and "  Subflow " .. table.concat(subflows, ", ") or "  Multipath RTCP")
end

-- RTP and RTCP on one port (RFC 5761).

local mux = Proto("mprtp_mux", "RTP and RTCP with Multipath RTP")

local function is_rtcp(buffer)
  return packet_size(buffer, 0) ~= nil
end

function mux.dissector(buffer, pinfo, tree)
  if not is_rtcp(buffer) then
    return Dissector.get("rtp"):call(buffer, pinfo, tree)
  end
  -- Multipath RTCP stands at the end of compounds, or alone; what is before it is left to RTCP's own dissector.
  local at, plain = 0, 0
  while true do
    local size = packet_size(buffer, at)
    local is_mprtcp = size and buffer(at + 1, 1):uint() == MPRTCP
    if (is_mprtcp or not size) and at > plain then
      Dissector.get("rtcp"):call(buffer(plain, at - plain):tvb(), pinfo, tree)
    end
    if not size then return buffer:len() end
    at = at + size
    if is_mprtcp then
      dissect_mprtcp(buffer(at - size, size):tvb(), pinfo, tree)
      plain = at
    end
  end
end

DissectorTable.get("udp.port"):add_for_decode_as(mux)

-- Whether these are whole RTCP packets, of which one is Multipath RTCP with whole blocks.
local function has_mprtcp(buffer)
  local at, found = 0, false
  while at < buffer:len() do
    local size = packet_size(buffer, at)
    if not size then return false end
    if buffer(at + 1, 1):uint() == MPRTCP then
      local block = at + 12
      while block < at + size do
        block = block + block_size(buffer(block, 1):uint(), buffer(block + 1, 1):uint())
      end
      if size < 16 or block ~= at + size then return false end
      found = true
    end
    at = at + size
  end
  return found
end

mux:register_heuristic("udp", function(buffer, pinfo, tree)
  if not has_mprtcp(buffer) then return false end
  pinfo.conversation = mux
  mux.dissector(buffer, pinfo, tree)
  return true
end)
